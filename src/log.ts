import pino from 'pino'

export type Log = pino.Logger

/** JSON lines on standard output. Written synchronously, so that a crash loses none. */
export const createLog = (level: string): Log =>
  pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, pino.destination({ dest: 1, sync: true }))
