import { operator, permitRequestOf, recordAudit } from '../audit/record.ts'
import type { Clock } from '../clock.ts'
import type { Db } from '../db/client.ts'
import { classifyError } from '../db/errors.ts'
import { invalid, notFound } from '../errors.ts'
import { decideChanges } from '../history/write.ts'
import { randomBase62 } from '../lib/base62.ts'
import { requireName } from '../lib/texts.ts'
import type { Owner } from '../orgs/manage.ts'
import { isPromptId, listPromptsOf } from './find.ts'
import { fileIsTaken, parsePromptFile } from './link.ts'
import type { NewPrompt, PromptChange, PromptRow } from './schema.ts'
import { findPromptInFile, insertPrompt, lockPrompt, type Prompt, type PromptFile, updatePrompt } from './store.ts'

export const createPrompt = (
  db: Db,
  clock: Clock,
  { org, organisationId }: Owner,
  { id = `pmt_${randomBase62(16)}`, ...given }: NewPrompt,
  actor = operator,
): Promise<PromptRow> =>
  db.transaction(async (sql) => {
    if (!isPromptId(id)) {
      throw invalid('The id is not valid.', [
        { path: '/id', message: 'must be pmt_ and 1 to 64 letters, digits, "_" or "-"' },
      ])
    }
    const { name, repository = null, path = null, live_branch = null } = normalise(given)
    const details = { name, repository, path }
    const row = { id, org, live_branch, ...details, ...notSeen, ...unused, created_at: clock.now() }
    if (!(await insertPrompt(sql, organisationId, row))) {
      const file = fileOf(row)
      const linked = file && (await findPromptInFile(sql, organisationId, file))
      if (linked) throw fileIsTaken(file, linked)
      // Ids are unique across organisations, so an id identifies a prompt.
      throw invalid(`The id ${id} is taken.`, [{ path: '/id', message: 'must be one that is free' }])
    }
    const event = { organisationId, action: 'prompt.created', subject: id } as const
    await recordAudit(sql, clock, actor, { ...event, details: { ...details, ...(live_branch && { live_branch }) } })
    return row
  }, permitRequestOf(actor))

/** Changes the given fields of a prompt. A call that changes nothing is not in the audit log. */
export async function changePrompt(db: Db, clock: Clock, prompt: Prompt, given: PromptChange, actor = operator) {
  const { organisationId } = prompt
  const change = normalise(given)
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
      if (!isSameBranch) await decideChanges(sql, organisationId, [prompt.id])
      const event = { organisationId, action: 'prompt.updated', subject: before.id, details: change } as const
      await recordAudit(sql, clock, actor, event)
      return after
    }, permitRequestOf(actor))
  } catch (error) {
    const file = fileOf(change)
    if (!file || classifyError(error) !== 'bad_row') throw error
    // The other prompt may have been linked elsewhere meanwhile.
    throw fileIsTaken(file, (await findPromptInFile(db.sql, organisationId, file)) ?? 'another prompt')
  }
}

/** Normalises the name and the link, if they are given. */
function normalise<Given extends PromptChange>(given: Given): Given {
  const name = given.name === undefined ? {} : { name: requireName(given.name) }
  const file = fileOf(given)
  return { ...given, ...name, ...(file && parsePromptFile(file)) }
}

const fileOf = ({ repository, path }: PromptChange): PromptFile | undefined =>
  typeof repository === 'string' && typeof path === 'string' ? { repository, path } : undefined

const unused = { archived: false, last_entry_at: null }

export const noFile = { repository: null, path: null }

/** For a new link: the last sighting was of another file. */
const notSeen = { file_state: null, file_moved_to: null }
