import { openDatabase } from '../db/open.ts'
import { migrations } from '../platform.ts'
import type { Command, Context, DatabaseCommand } from './command.ts'

/** Operators wait for what they asked for: no deadline. Whoever serves the data directory is asked to share it. */
export const forCommands = {
  migrations,
  queryTimeoutMs: 0,
  maxConnections: 1,
  whenInUse: 'share',
} as const

/** Opens the configured database around a command. */
export const onDatabase = (command: DatabaseCommand): Command => ({
  ...command,
  async run(context: Context) {
    const db = await openDatabase(context.config, forCommands)
    try {
      await command.run({ ...context, db })
    } finally {
      await db.close()
    }
  },
})
