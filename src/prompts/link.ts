import { type Actor, github, permitRequestOf, recordAudit } from '../audit/record.ts'
import type { AuditEvent } from '../audit/schema.ts'
import type { Clock } from '../clock.ts'
import type { Db, Sql } from '../db/client.ts'
import { invalid } from '../errors.ts'
import { parseRepository } from '../lib/repository_links.ts'
import { isPlain } from '../lib/texts.ts'
import type { Owner } from '../orgs/manage.ts'
import type { RepositoryRename } from './schema.ts'
import { findLinkedPrompts, type PromptFile, updateRepository } from './store.ts'

export { type FileSeen, findLinkedPrompts, type LinkedPrompt, markFilesSeen, selectRepositories } from './store.ts'

/** In bytes. Links are indexed, and Postgres limits an index entry to 2,704 bytes. */
const maxPathBytes = 1_000

/** Validates a repository and a path, and normalises them for comparison. */
export function parsePromptFile(given: { repository: string; path: string }): PromptFile {
  const repository = requireRepository(given.repository, 'The link', '/repository')
  const path = given.path.replace(/^(?:\.?\/)+/, '')
  const isOdd = path.split('/').some((part) => ['', '.', '..'].includes(part))
  if (isOdd || Buffer.byteLength(path) > maxPathBytes || !isPlain(path)) {
    const message = `must be the path of a file from the root of the repository, of at most ${maxPathBytes} bytes`
    throw invalid('The link is not valid.', [{ path: '/path', message }])
  }
  return { repository, path }
}

function requireRepository(text: string, what: string, path: string): string {
  const repository = parseRepository(text)
  if (repository !== undefined) return repository
  const message = 'must be owner/name on github.com, or host/path on any other host'
  throw invalid(`${what} is not valid.`, [{ path, message }])
}

/** Moves the links to a repository that was renamed or moved to another host. `left` are linked to a file that is taken. */
export async function renameRepository(
  db: Db,
  clock: Clock,
  { organisationId, org: subject }: Owner,
  given: RepositoryRename,
  actor: Actor,
): Promise<{ moved: number; left: number }> {
  const from = requireRepository(given.old, 'The rename', '/old')
  const to = requireRepository(given.new, 'The rename', '/new')
  return db.transaction(async (sql) => {
    const { length: moved } = from === to ? [] : await updateRepository(sql, organisationId, from, to)
    const { length: left } = await findLinkedPrompts(sql, organisationId, from)
    if (moved + left === 0) {
      throw invalid(`No prompt is linked to ${from}.`, [
        { path: '/old', message: 'must be a repository that prompts are linked to' },
      ])
    }
    const details = { old: from, new: to, prompts: moved }
    if (moved > 0)
      await recordAudit(sql, clock, actor, { organisationId, action: 'repository.renamed', subject, details })
    return { moved, left }
  }, permitRequestOf(actor))
}

/** Moves the links of a renamed repository, except those of files that another prompt is linked to under the new name. */
export async function moveLinks(sql: Sql, clock: Clock, organisationId: number, from: string, to: string) {
  const moved = await updateRepository(sql, organisationId, from, to)
  const events = moved.map(({ id, path }): AuditEvent => {
    return { organisationId, action: 'prompt.updated', subject: id, details: { repository: to, path } }
  })
  await recordAudit(sql, clock, github, ...events)
}

export const fileIsTaken = ({ repository, path }: PromptFile, by: string) =>
  invalid(`${path} in ${repository} is already linked to ${by}.`, [
    { path: '/path', message: 'must be the path of a file that no other prompt is linked to' },
  ])
