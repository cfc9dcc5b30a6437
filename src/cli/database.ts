import type { Db } from '../db/client.ts'
import { within } from '../lib/deadline.ts'
import { openInput } from '../lib/input.ts'
import { migrations } from '../platform.ts'
import type { Command, Commands, Context, DatabaseCommand } from './command.ts'
import { interruptible, untilInterrupted } from './interruption.ts'

/**
 * Options for the commands that an operator begins with. An operator waits for the result, so there is no deadline. A
 * process that serves the data directory shares it.
 */
export const forFirstCommands = {
  migrations,
  queryTimeoutMs: 0,
  maxConnections: 1,
  whenInUse: 'share',
} as const

export const forCommands = { ...forFirstCommands, mustExist: true } as const

/** After this time without an answer of the database, the command prints what it waits for. */
const noticeMs = 5_000
const queryMs = 2_000

/** Opens the configured database around each command. */
export const onDatabase = (commands: Record<string, DatabaseCommand>): Commands =>
  Object.fromEntries(Object.entries(commands).map(([name, command]) => [name, around(command)]))

const around = (command: DatabaseCommand): Command => ({
  ...command,
  async run(context: Context) {
    const input = command.readsFile ? await openInput(context.typed.words[0] as string) : undefined
    const { openDatabase } = await import('../db/open.ts')
    const opening = openDatabase(context.config, command.isFirst ? forFirstCommands : forCommands)
    await withDatabase(context, untilInterrupted(context.interruption, opening, 0), (db) =>
      command.run({ ...context, db, input }),
    )
  },
})

/** Runs the work of a command on a database, and closes that. */
export async function withDatabase(
  { config, interruption, warn }: Context,
  opening: Promise<Db>,
  work: (db: Db) => Promise<void>,
): Promise<void> {
  const db = await opening

  function onWait(answer: Promise<unknown>): void {
    const timer = setTimeout(warnOfWait, noticeMs)
    const stop = () => clearTimeout(timer)
    answer.then(stop, stop)
  }

  async function warnOfWait(): Promise<void> {
    const { isStandbyAwaited } = await import('../db/waits.ts')
    const isStandby = config.DATABASE_URL && (await within(queryMs, isStandbyAwaited(db)).catch(() => false))
    const cause = isStandby ? ' to hear from its synchronous standby (synchronous_standby_names)' : ' to answer'
    if (!interruption.signal.aborted) warn(`Still waiting for the database${cause}. Ctrl-C ends the waiting.`)
  }

  try {
    await work(interruptible(db, interruption, onWait))
  } finally {
    const closing = db.close()
    // Interrupted, a command does not wait for a server to answer: the end of the process closes the connections too.
    if (interruption.signal.aborted && config.DATABASE_URL) closing.catch(() => {})
    else await closing
  }
}
