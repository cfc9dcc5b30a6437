import { nextTurn } from '../lib/turns.ts'
import type { Commands } from './command.ts'

const signals = ['SIGTERM', 'SIGINT'] as const
/** A terminal tells every program in it, and the one that has started another tells that too: still one signal. */
const sameSignalMs = 500

export const serveCommands: Commands = {
  serve: {
    usage: 'serve [--host H] [--port P] [--demo]',
    does: 'runs the service; --demo fills an empty embedded database to try it on',
    values: ['host', 'port'],
    flags: ['demo'],
    async run(context) {
      // From the beginning: whoever is told to stop while it starts must also leave the database in order.
      const stopped = nextSignal()
      const { openForService } = await import('../db/open.ts')
      const observer = {}
      const opening = openForService(context.config, observer)
      // Whoever serves hears of a failure; until then the database answers while the rest of the program is loaded.
      opening.catch(() => {})
      const { serve } = await loadRest()
      await serve({ ...context, opening, observer, stopped })
    },
  },
}

/** In pieces, between which the database is heard and answered. */
async function loadRest() {
  await nextTurns()
  await import('../log.ts')
  await nextTurns()
  await import('../app.ts')
  await nextTurns()
  return import('./serving.ts')
}

/** Two: what was heard in the one is answered in the other. */
async function nextTurns(): Promise<void> {
  await nextTurn()
  await nextTurn()
}

/** Resolves with the first one. Another ends everything at once: somebody does not want to wait. */
const nextSignal = () =>
  new Promise<string>((resolve) => {
    let toldAt: number | undefined
    const hear = (signal: string) => {
      toldAt ??= performance.now()
      if (performance.now() - toldAt > sameSignalMs) process.exit(1)
      resolve(signal)
    }
    for (const signal of signals) process.on(signal, hear)
  })
