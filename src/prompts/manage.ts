import type { Clock } from '../clock.ts'
import type { Db } from '../db/client.ts'
import { ServiceError } from '../errors.ts'
import { randomBase62 } from '../lib/base62.ts'
import { requireText } from '../lib/texts.ts'
import { requireOrganisation } from '../orgs/manage.ts'
import { isPromptId } from './find.ts'
import { fileIsTaken, parsePromptFile } from './link.ts'
import { findPromptInFile, insertPrompt, type PromptRow, selectPrompts } from './store.ts'

export async function createPrompt(
  db: Db,
  clock: Clock,
  given: { org: string; name: string; id: string | null; file?: { repository: string; path: string } | null },
): Promise<PromptRow> {
  const id = given.id ?? `pmt_${randomBase62(16)}`
  if (!isPromptId(id)) {
    throw new ServiceError('validation_error', 'The id must be pmt_ and 1 to 64 letters, digits, "_" or "-".')
  }
  const organisation = await requireOrganisation(db, given.org)
  const name = requireText('name', given.name)
  const file = given.file ? parsePromptFile(given.file) : null
  const prompt = { id, organisationId: organisation.id, name, file, createdAt: clock.now() }
  if (!(await insertPrompt(db.sql, prompt))) {
    const linked = file && (await findPromptInFile(db.sql, organisation.id, file))
    throw linked ? fileIsTaken(file, linked) : new ServiceError('validation_error', `The id ${id} is taken.`)
  }
  return { id, org: given.org, name, ...(file ?? { repository: null, path: null }) }
}

export async function listPrompts(db: Db, org: string): Promise<PromptRow[]> {
  const { id } = await requireOrganisation(db, org)
  return selectPrompts(db.sql, id)
}
