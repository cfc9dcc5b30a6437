import type { Clock } from '../clock.ts'
import type { Db, Sql } from '../db/client.ts'
import { type Detail, invalid, ServiceError } from '../errors.ts'
import { parseInstant } from '../lib/times.ts'
import { createValidator } from '../lib/validate.ts'
import { requirePrompt } from '../prompts/find.ts'
import { showEntry } from './list.ts'
import { type HistoryEntry, NewHistoryEntry } from './schema.ts'
import {
  addToBatch,
  type EntryRow,
  type EntryToRecord,
  insertEntries,
  lockHistories,
  mergeBatch,
  openBatch,
  turnIntoMerged,
} from './store.ts'

const validate = createValidator(NewHistoryEntry, 'The history entry')
const importBatch = 5_000

type Recorded = { entry: HistoryEntry; isNew: boolean }

/** An entry that another feature has to tell of a prompt. */
export type Told = {
  promptId: number
  entry: NewHistoryEntry
  /** The commit as which a merge may have been taken for a direct deploy, null for none; its own unless given. */
  deployedAs?: string | null | undefined
}

/** Adds an entry, or finds the one that is there already. */
export async function recordEntry(db: Db, clock: Clock, promptId: number, given: unknown): Promise<Recorded> {
  const entries = [{ ...readEntry(given, clock), prompt_id: promptId }]
  // On the connections of transactions: those who wait for one history must not take the connections of all others.
  const [row] = await db.transaction((sql) => insertEntries(sql, entries))
  const { is_new: isNew, ...entry } = row as EntryRow & { is_new: boolean }
  return { entry: showEntry(entry), isNew }
}

/** For operators, who name a prompt of any organisation. */
export async function recordHistory(db: Db, clock: Clock, prompt: string, given: unknown): Promise<HistoryEntry> {
  const { id } = await requirePrompt(db.sql, prompt)
  return (await recordEntry(db, clock, id, given)).entry
}

/**
 * Records what was told, within a transaction of the caller's, and says how many entries are new or have changed. A
 * commit that was taken for a direct deploy, and is then told to be a merge into the same branch, becomes that merge.
 */
export async function recordTold(sql: Sql, clock: Clock, told: Told[]): Promise<number> {
  if (told.length === 0) return 0
  const entries = told.map(({ promptId, entry }) => ({ ...readEntry(entry, clock), prompt_id: promptId }))
  // All of them first and in a fixed order, so that no two transactions wait for each other.
  await lockHistories(
    sql,
    entries.map((entry) => entry.prompt_id),
  )
  const turned = await turnIntoMerged(
    sql,
    entries.map((entry, index) => {
      const { deployedAs = entry.commit_sha } = told[index] as Told
      return { ...entry, deployed_as: deployedAs }
    }),
  )
  const rows = await insertEntries(sql, entries)
  return turned + rows.filter((row) => row.is_new).length
}

/**
 * Records one entry a line, all or nothing, and says how many were new. A line that cannot be taken is named in
 * the error.
 */
export function importHistory(
  db: Db,
  clock: Clock,
  lines: AsyncIterable<string>,
  onProgress: (lines: number) => void,
): Promise<{ recorded: number }> {
  return db.transaction(async (sql) => {
    const promptIds = new Map<string, number>()
    const batch = await openBatch(sql)
    let waiting: EntryToRecord[] = []
    let added = 0
    let lineNumber = 0

    async function readLine(line: string): Promise<EntryToRecord> {
      const { prompt, ...given } = parseLine(line)
      const entry = readEntry(given, clock)
      const known = promptIds.get(prompt) ?? (await requirePrompt(sql, prompt)).id
      promptIds.set(prompt, known)
      return { ...entry, prompt_id: known }
    }

    async function flush(): Promise<void> {
      if (waiting.length > 0) await addToBatch(sql, batch, added, waiting)
      added += waiting.length
      waiting = []
      onProgress(lineNumber)
    }

    for await (const line of lines) {
      lineNumber += 1
      if (line.trim() === '') continue
      waiting.push(await readLine(line).catch((error) => Promise.reject(atLine(lineNumber, error))))
      if (waiting.length === importBatch) await flush()
    }
    await flush()
    return { recorded: await mergeBatch(sql, batch) }
  })
}

function parseLine(line: string): { prompt: string } & Record<string, unknown> {
  let value: unknown
  try {
    value = JSON.parse(line)
  } catch {
    throw new ServiceError('validation_error', 'This is not JSON.')
  }
  const prompt = (value as { prompt?: unknown } | null)?.prompt
  if (typeof prompt !== 'string') {
    throw invalid('The history entry is not valid.', [{ path: '/prompt', message: 'must be a prompt id' }])
  }
  return value as { prompt: string }
}

function atLine(lineNumber: number, error: unknown): unknown {
  if (!(error instanceof ServiceError)) return error
  return new ServiceError(error.code, `Line ${lineNumber}: ${error.message}`, error.context)
}

/** Checks an entry as given against the shape and the rules of its action. */
function readEntry(given: unknown, clock: Clock): Omit<EntryToRecord, 'prompt_id'> {
  const entry = validate(given)
  const { action, user, commit_sha, branch_name, pr_number = null, pr_url = null } = entry
  const createdAt = entry.created_at === undefined ? clock.now() : parseInstant(entry.created_at)
  const problems: Detail[] = []
  if (!createdAt) {
    problems.push({ path: '/created_at', message: 'must be an ISO 8601 time with its zone, as 2026-11-14T23:35:00Z' })
  }
  if (action === 'deployed' && (pr_number !== null || pr_url !== null)) {
    problems.push({ path: '/pr_number', message: 'must be absent, with pr_url, when the action is deployed' })
  }
  if (action !== 'deployed' && (pr_number === null || pr_url === null)) {
    problems.push({ path: '/pr_number', message: `must be given, with pr_url, when the action is ${action}` })
  }
  if (pr_url !== null && !/^https?:\/\/[^\s]+$/.test(pr_url)) {
    problems.push({ path: '/pr_url', message: 'must be an http or https address' })
  }
  if (!createdAt || problems.length > 0) throw invalid('The history entry is not valid.', problems)
  return {
    action,
    user_name: user.name,
    user_email: user.email,
    commit_sha,
    branch_name,
    pr_number,
    pr_url,
    created_at: createdAt,
  }
}
