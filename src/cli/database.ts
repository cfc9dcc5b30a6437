import { resolve } from 'node:path'
import type { Db } from '../db/client.ts'
import { type Input, openInput } from '../lib/input.ts'
import type { Command, Context } from './command.ts'
import { interruptible, untilInterrupted } from './interruption.ts'
import { resolveNames } from './names.ts'

/** The database of a command: one that exists, one that is created if needed, or likewise one of any schema. */
type Which = 'existing' | 'created' | 'any schema'

export type DatabaseContext = Context & { db: Db }

/** The database is opened before the command and closed after it. */
type DatabaseCommand = Omit<Command, 'run'> & {
  database?: Which
  /** Whether its first word names a file to read, which is opened before the database; "-" is standard input. */
  readsFile?: true
  run(context: DatabaseContext & { input: Input | undefined }): Promise<void>
}

/** An operator waits for the result, so there is no deadline. A process that serves the data directory shares it. */
export const forCommands = {
  queryTimeoutMs: 0,
  maxConnections: 1,
  whenInUse: 'share',
  mustExist: true,
} as const

export const onDatabase = (commands: DatabaseCommand[]): Command[] =>
  commands.map(({ database, readsFile, run, ...command }) => ({
    ...command,
    async run(context) {
      // A pipe is open only once somebody writes to it.
      const opening = readsFile ? openInput(context.args.positional(0)) : Promise.resolve(undefined)
      const input = await untilInterrupted(context.interruption, opening, 0)
      await withDatabase(context, (opened) => run({ ...opened, input }), database)
    },
  }))

/** Opens the database, and looks up the ids of the organisations and prompts that the arguments name. */
export async function withDatabase(
  context: Context,
  work: (context: DatabaseContext) => Promise<void>,
  which: Which = 'existing',
): Promise<void> {
  const { openAny, openDatabase } = await import('../db/open.ts')
  const open = which === 'any schema' ? openAny : openDatabase
  const observer = {
    onCreated: (dataDir: string) => context.warn(`Created a new database in ${resolve(dataDir)}.`),
    onFailure: ({ message }: Error) => {
      context.interruption.stopReason = message
    },
  }
  const opening = open(context.config, { ...forCommands, mustExist: which === 'existing', observer })
  await workOn(context, await untilInterrupted(context.interruption, opening, 0), async (db) =>
    work({ ...context, db, args: await resolveNames(db.sql, context.args) }),
  )
}

/** Closes the database after the work. */
export async function workOn(
  { config, interruption, warn }: Context,
  db: Db,
  work: (db: Db) => Promise<void>,
): Promise<void> {
  function onWait(answer: Promise<unknown>): void {
    const timer = setTimeout(() => {
      if (!interruption.signal.aborted) warn('Still waiting for the database to answer. Ctrl-C ends the waiting.')
    }, 5_000)
    const stop = () => clearTimeout(timer)
    answer.then(stop, stop)
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
