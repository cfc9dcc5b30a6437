import { migrations } from '../platform.ts'
import type { Command, Commands, Context, DatabaseCommand } from './command.ts'

/**
 * For the commands that an operator begins with. Operators wait for what they asked for: no deadline. Whoever serves
 * the data directory is asked to share it.
 */
export const forFirstCommands = {
  migrations,
  queryTimeoutMs: 0,
  maxConnections: 1,
  whenInUse: 'share',
} as const

export const forCommands = { ...forFirstCommands, mustExist: true } as const

/** Opens the configured database around each command. */
export const onDatabase = (commands: Record<string, DatabaseCommand>): Commands =>
  Object.fromEntries(Object.entries(commands).map(([name, command]) => [name, around(command)]))

const around = (command: DatabaseCommand): Command => ({
  ...command,
  async run(context: Context) {
    const { openDatabase } = await import('../db/open.ts')
    const db = await openDatabase(context.config, command.isFirst ? forFirstCommands : forCommands)
    try {
      await command.run({ ...context, db })
    } finally {
      await db.close()
    }
  },
})
