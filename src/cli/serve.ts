import type { Command } from './command.ts'
import { onSignals } from './interruption.ts'

export const commands: Command[] = [
  {
    usage: 'serve [--host H] [--port P] [--demo]',
    description: 'runs the service; --demo fills an empty embedded database with sample data',
    isService: true,
    async run(context) {
      // Handles signals from the start: a service that is stopped while it starts must close the database too.
      const stopped = nextSignal()
      const { openForService } = await import('../db/open.ts')
      const observer = {}
      const opening = openForService(context.config, observer)
      // runUntilStopped reports a failure. The rest of the program is loaded while the database answers.
      opening.catch(() => {})
      const { runUntilStopped } = await import('./lifecycle.ts')
      await runUntilStopped(context, opening, observer, stopped)
    },
  },
]

/** Resolves with the first signal. A later one ends the process immediately. */
const nextSignal = () =>
  new Promise<string>((resolve) => onSignals(['SIGTERM', 'SIGINT'], resolve, () => process.exit(1)))
