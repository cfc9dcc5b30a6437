import { nextTurn } from '../lib/turns.ts'
import type { Commands } from './command.ts'

const signals = ['SIGTERM', 'SIGINT'] as const

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

const nextSignal = () =>
  new Promise<string>((resolve) => {
    for (const signal of signals) process.once(signal, () => resolve(signal))
  })
