import { github, recordAudit } from '../audit/record.ts'
import type { AuditEvent } from '../audit/schema.ts'
import type { Clock } from '../clock.ts'
import type { Sql } from '../db/client.ts'
import { invalid } from '../errors.ts'
import { parseRepository } from '../lib/repository_links.ts'
import { isPlain } from '../lib/texts.ts'
import { type PromptFile, updateRepository } from './store.ts'

export { type FileSeen, findLinkedPrompts, type LinkedPrompt, markFilesSeen } from './store.ts'

/** In bytes. Links are indexed, and Postgres limits an index entry to 2,704 bytes. */
const maxPathBytes = 1_000

/** Validates a repository and a path, and normalises them for comparison. */
export function parsePromptFile(given: { repository: string; path: string }): PromptFile {
  const repository = parseRepository(given.repository)
  if (repository === undefined) {
    throw invalid('The link is not valid.', [
      { path: '/repository', message: 'must be owner/name on github.com, or host/path on any other host' },
    ])
  }
  const path = given.path.replace(/^(?:\.?\/)+/, '')
  const isOdd = path.split('/').some((part) => ['', '.', '..'].includes(part))
  if (isOdd || Buffer.byteLength(path) > maxPathBytes || !isPlain(path)) {
    const message = `must be the path of a file from the root of the repository, of at most ${maxPathBytes} bytes`
    throw invalid('The link is not valid.', [{ path: '/path', message }])
  }
  return { repository, path }
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
