import { resolve } from 'node:path'
import { backUpFor } from './before_migration.ts'
import type { Command } from './command.ts'
import { onSignals } from './interruption.ts'

export const commands: Command[] = [
  {
    usage: 'serve [--host H] [--port P] [--demo]',
    description: 'runs the service; --demo fills an empty embedded database with sample data',
    isService: true,
    async run(context) {
      // From the start: a service that is stopped while it starts must close the database too.
      const stopped = new Promise<string>((resolve) => onSignals(['SIGTERM', 'SIGINT'], resolve, () => process.exit(1)))
      const { openForService } = await import('../db/open.ts')
      const observer = {
        onCreating(dataDir: string) {
          const place = resolve(dataDir)
          const expected = `There is no database in ${place}: creating an empty one. If your data should be there, stop, and check DATA_DIR and its volume.`
          context.warn(context.args.options.demo ? `Creating a new database in ${place}.` : expected)
        },
      }
      const opening = openForService(context.config, observer, backUpFor(context))
      // runUntilStopped reports a failure. The rest of the program is loaded while the database answers.
      opening.catch(() => {})
      const { runUntilStopped } = await import('./lifecycle.ts')
      await runUntilStopped(context, opening, observer, stopped)
    },
  },
]
