import { type Actor, operator, permitRequestOf, recordAudit } from '../audit/record.ts'
import type { Clock } from '../clock.ts'
import type { Db, Sql } from '../db/client.ts'
import { classifyError } from '../db/errors.ts'
import { invalid, notFound } from '../errors.ts'
import { randomBase62 } from '../lib/base62.ts'
import { type PageRequest, readAllPages, readPage } from '../lib/cursor_page.ts'
import { requireName } from '../lib/texts.ts'
import { createValidator } from '../lib/validate.ts'
import { requireOrganisation } from '../orgs/manage.ts'
import { isPromptId } from './find.ts'
import { fileIsTaken, parsePromptFile } from './link.ts'
import { LiveBranch, type PromptFilters, type PromptRow } from './schema.ts'
import {
  findPromptInFile,
  insertPrompt,
  lockPrompt,
  markChanges,
  type Prompt,
  type PromptFile,
  selectPromptNames,
  selectPromptRows,
  selectPrompts,
  updatePrompt,
} from './store.ts'

/** A statement reads this many names: the embedded engine has one connection, which nobody may hold for long. */
const namesPerStatement = 2_000

type PromptToCreate = {
  name: string
  id: string | null
  file?: PromptFile | null | undefined
  liveBranch?: string | null | undefined
}

export async function createPrompt(db: Db, clock: Clock, { org, ...given }: PromptToCreate & { org: string }) {
  const { id: organisationId } = await requireOrganisation(db, org)
  const { id, ...prompt } = await db.transaction((sql) =>
    createPromptInTransaction(sql, clock, organisationId, given, operator),
  )
  return { id, org, ...prompt }
}

export async function createPromptInTransaction(
  sql: Sql,
  clock: Clock,
  organisationId: number,
  given: PromptToCreate,
  actor: Actor,
): Promise<PromptRow> {
  const id = given.id ?? `pmt_${randomBase62(16)}`
  if (!isPromptId(id)) {
    throw invalid('The id is not valid.', [
      { path: '/id', message: 'must be pmt_ and 1 to 64 letters, digits, "_" or "-"' },
    ])
  }
  const name = requireName(given.name)
  const file = given.file ? parsePromptFile(given.file) : null
  const liveBranch = given.liveBranch ? requireBranch(given.liveBranch) : null
  const createdAt = clock.now()
  if (!(await insertPrompt(sql, { id, organisationId, name, file, liveBranch, createdAt }))) {
    const linked = file && (await findPromptInFile(sql, organisationId, file))
    if (linked) throw fileIsTaken(file, linked)
    // Ids are unique across organisations, so an id identifies a prompt.
    throw invalid(`The id ${id} is taken.`, [{ path: '/id', message: 'must be one that is free' }])
  }
  const details = { name, ...(file ?? noFile), ...(liveBranch !== null && { live_branch: liveBranch }) }
  await recordAudit(sql, clock, actor, { organisationId, action: 'prompt.created', subject: id, details })
  return { id, live_branch: null, ...details, ...notSeen, archived: false, last_entry_at: null, created_at: createdAt }
}

/** The prompts of an organisation that the filters leave, newest first. */
export const listPrompts = (
  db: Db,
  organisationId: number,
  request: PageRequest,
  filters: PromptFilters,
  list = 'prompts',
) =>
  readPage<PromptRow>(
    JSON.stringify([list, organisationId, filters.search, filters.archived]),
    request,
    (beforeId, limit) => selectPrompts(db.sql, organisationId, filters, beforeId, limit),
  )

/** The row id and the name of every prompt that the filters leave, newest first; undefined if there are more than `most`. */
export async function findPromptNames(sql: Sql, organisationId: number, filters: PromptFilters, most: number) {
  const found: { id: number; name: string }[] = []
  for (let beforeId = Number.MAX_SAFE_INTEGER; ; beforeId = found.at(-1)?.id as number) {
    const rows = await selectPromptNames(sql, organisationId, filters, beforeId, namesPerStatement)
    found.push(...rows)
    if (found.length > most) return undefined
    if (rows.length < namesPerStatement) return found
  }
}

/** The prompts of an organisation that have these row ids, in their order. */
export async function listPromptsOf(sql: Sql, organisationId: number, ids: number[]): Promise<PromptRow[]> {
  const rows = new Map((await selectPromptRows(sql, organisationId, ids)).map(({ rowId, ...row }) => [rowId, row]))
  return ids.flatMap((id) => rows.get(id) ?? [])
}

/** Every prompt of an organisation, oldest first; archived ones too unless told otherwise. */
export async function listAllPrompts(
  db: Db,
  org: string,
  archived: PromptFilters['archived'] = 'all',
): Promise<(PromptRow & { org: string })[]> {
  const { id: organisationId } = await requireOrganisation(db, org)
  const prompts = await readAllPages((page) => listPrompts(db, organisationId, page, { search: null, archived }))
  return prompts.toReversed().map(({ id, ...prompt }) => ({ id, org, ...prompt }))
}

export async function showPrompt(db: Db, { id, organisationId }: Prompt): Promise<PromptRow> {
  const [row] = await listPromptsOf(db.sql, organisationId, [id])
  // Only a failover that lost the prompt leads here.
  if (!row) throw notFound()
  return row
}

type PromptUpdate = Partial<Pick<PromptToCreate, 'file' | 'liveBranch'>> & {
  name?: string | undefined
  archived?: boolean | undefined
}

/** Changes what is given of a prompt, and leaves the rest. What changes nothing is not in the audit log. */
export async function changePrompt(db: Db, clock: Clock, prompt: Prompt, given: PromptUpdate, actor = operator) {
  const { organisationId } = prompt
  const name = given.name === undefined ? {} : { name: requireName(given.name) }
  const file = given.file && parsePromptFile(given.file)
  const archived = given.archived === undefined ? {} : { archived: given.archived }
  const branch = given.liveBranch && requireBranch(given.liveBranch)
  const liveBranch = branch === undefined ? {} : { live_branch: branch }
  const change = { ...name, ...archived, ...(file === undefined ? {} : (file ?? noFile)), ...liveBranch }
  try {
    return await db.transaction(async (sql) => {
      if (!(await lockPrompt(sql, prompt))) throw notFound()
      const [before] = (await listPromptsOf(sql, organisationId, [prompt.id])) as [PromptRow]
      const changed = { ...before, ...change }
      const isSameFile = changed.repository === before.repository && changed.path === before.path
      const isSameBranch = changed.live_branch === before.live_branch
      const isSameRest = changed.name === before.name && changed.archived === before.archived
      if (isSameFile && isSameBranch && isSameRest) return before
      const after = isSameFile ? changed : { ...changed, ...notSeen }
      await updatePrompt(sql, prompt, after)
      if (!isSameBranch) await markChanges(sql, prompt, after.live_branch)
      const event = { organisationId, action: 'prompt.updated', subject: before.id, details: change } as const
      await recordAudit(sql, clock, actor, event)
      return after
    }, permitRequestOf(actor))
  } catch (error) {
    const linked =
      file && classifyError(error) === 'bad_row' ? await findPromptInFile(db.sql, organisationId, file) : undefined
    throw file && linked ? fileIsTaken(file, linked) : error
  }
}

const noFile = { repository: null, path: null }

/** What was seen of another file says nothing of this one. */
const notSeen = { file_state: null, file_moved_to: null }

const validateBranch = createValidator(LiveBranch, 'The live branch')

const requireBranch = (live_branch: string): string => validateBranch({ live_branch }).live_branch
