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
      // The database answers while the rest of the program is loaded.
      const [db, { serve }] = await Promise.all([opening, loadRest()])
      await serve({ ...context, db, observer, stopped })
    },
  },
}

/** In pieces, between which the database is heard. */
async function loadRest() {
  await nextTurn()
  await import('../log.ts')
  await nextTurn()
  await import('../app.ts')
  await nextTurn()
  return import('./serving.ts')
}

const nextSignal = () =>
  new Promise<string>((resolve) => {
    for (const signal of signals) process.once(signal, () => resolve(signal))
  })
