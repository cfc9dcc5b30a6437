import { nextTurn } from '../lib/turns.ts'
import type { Commands } from './command.ts'

const signals = ['SIGTERM', 'SIGINT'] as const
/** A terminal signals every process in it, and a parent such as npx passes its own signal on: that is still one. */
const sameSignalMs = 500

export const serveCommands: Commands = {
  serve: {
    usage: 'serve [--host H] [--port P] [--demo]',
    does: 'runs the service; --demo fills an empty embedded database to try it on',
    values: ['host', 'port'],
    flags: ['demo'],
    isService: true,
    async run(context) {
      // Listened for from the beginning: a service that is stopped while it starts must close the database too.
      const stopped = nextSignal()
      const { openForService } = await import('../db/open.ts')
      const observer = {}
      const opening = openForService(context.config, observer)
      // A failure is reported by runUntilStopped. The rest of the program is loaded while the database answers.
      opening.catch(() => {})
      const { runUntilStopped } = await loadRest()
      await runUntilStopped({ ...context, opening, observer, stopped })
    },
  },
}

/** Loads the rest in pieces; between them the answers of the database are read and the next statements sent. */
async function loadRest() {
  await nextTurns()
  await import('../log.ts')
  await nextTurns()
  await import('../app.ts')
  await nextTurns()
  return import('./lifecycle.ts')
}

/** Two turns: an answer is read in the first, and the next statement goes out in the second. */
async function nextTurns(): Promise<void> {
  await nextTurn()
  await nextTurn()
}

/** Resolves with the first signal. A later one ends the process at once, for an operator who does not want to wait. */
const nextSignal = () =>
  new Promise<string>((resolve) => {
    let firstAt: number | undefined
    const onSignal = (signal: string) => {
      firstAt ??= performance.now()
      if (performance.now() - firstAt > sameSignalMs) process.exit(1)
      resolve(signal)
    }
    for (const signal of signals) process.on(signal, onSignal)
  })
