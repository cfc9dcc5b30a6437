import { resolve } from 'node:path'
import type { Db, Sql } from '../db/client.ts'
import { ServiceError } from '../errors.ts'
import { type Input, openInput } from '../lib/input.ts'
import { findOrganisationsNamed } from '../orgs/manage.ts'
import { findPromptsNamed } from '../prompts/find.ts'
import { backUpFor } from './before_migration.ts'
import type { Arguments, Command, Context } from './command.ts'
import { interruptible, untilInterrupted } from './interruption.ts'

/** Whether the database must exist, is created if missing, or is created if missing and may have any schema version. */
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
      const input = await untilInterrupted(context.interruption.signal, opening, 0)
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
    onCreating: (dataDir: string) => context.warn(`Creating a new database in ${resolve(dataDir)}.`),
    onFailure: ({ message }: Error) => {
      context.interruption.stopReason = message
    },
  }
  const mustExist = which === 'existing' || context.args.options['dry-run'] === true
  const opening = open(context.config, { ...forCommands, mustExist, observer, backUp: backUpFor(context) })
  await workOn(context, await untilInterrupted(context.interruption.signal, opening, 0), async (db) =>
    work({ ...context, db, args: await resolveNames(db.sql, context.args) }),
  )
}

/** Closes the database after the work. */
export async function workOn(
  { config, interruption }: Context,
  db: Db,
  work: (db: Db) => Promise<void>,
): Promise<void> {
  try {
    await work(interruptible(db, interruption))
  } finally {
    const closing = db.close()
    // Interrupted, a command does not wait for a server to answer: the end of the process closes the connections too.
    if (interruption.signal.aborted && config.DATABASE_URL) closing.catch(() => {})
    else await closing
  }
}

/** Replaces the names of organisations and prompts by their ids. A prompt is looked for in the organisation of --org. */
async function resolveNames(sql: Sql, given: Arguments): Promise<Arguments> {
  const args = await given.withIds('ORG', async (name) =>
    requireOne('organisation', 'orgs list', name, await findOrganisationsNamed(sql, name)),
  )
  return args.withIds('PROMPT', async (name) =>
    requireOne('prompt', 'prompts list --org ORG', name, await findPromptsNamed(sql, name, args.text('org'))),
  )
}

function requireOne(noun: string, command: string, name: string, [id, ...others]: string[]): string {
  if (id === undefined) {
    throw new ServiceError('not_found', `There is no ${noun} ${name}. "prompt-signals ${command}" lists them.`)
  }
  if (others.length === 0) return id
  throw new ServiceError('validation_error', `Several ${noun}s are named ${name}: use an id, such as ${id}.`)
}
