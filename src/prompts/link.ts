import { type Actor, recordAudit } from '../audit/record.ts'
import type { AuditEvent } from '../audit/schema.ts'
import type { Clock } from '../clock.ts'
import type { Sql } from '../db/client.ts'
import { invalid } from '../errors.ts'
import { isPlain } from '../lib/texts.ts'
import { type PromptFile, selectPromptsIn, selectRepositoriesOf, updateRepository } from './store.ts'

export type LinkedPrompt = { id: number; path: string }

/** In bytes, because Postgres indexes a link, and no entry of an index may have more than 2,704. */
const maxPathBytes = 1_000

/** GitHub renames repositories, and thereby moves links, by itself. */
const github: Actor = { name: 'github' }

/** GitHub takes owner/name in any letter case for the same repository. */
export const repositoryKey = (fullName: string): string => fullName.toLowerCase()

/** Checks a repository and a path as they are given, and normalises them for comparison. */
export function parsePromptFile(given: { repository: string; path: string }): PromptFile {
  // GitLab has groups of groups.
  if (!/^[\w.-]{1,100}(?:\/[\w.-]{1,100}){1,9}$/.test(given.repository)) {
    throw invalid('The link is not valid.', [
      { path: '/repository', message: 'must be owner/name, as its host shows it' },
    ])
  }
  const path = given.path.replace(/^(?:\.?\/)+/, '')
  const isOdd = path.split('/').some((part) => ['', '.', '..'].includes(part))
  if (isOdd || Buffer.byteLength(path) > maxPathBytes || !isPlain(path)) {
    const message = `must be that of a file, from the root of the repository, of at most ${maxPathBytes} bytes`
    throw invalid('The link is not valid.', [{ path: '/path', message }])
  }
  return { repository: repositoryKey(given.repository), path }
}

/** The prompts that are kept in a repository. */
export const findLinkedPrompts = (sql: Sql, organisationId: number, repository: string): Promise<LinkedPrompt[]> =>
  selectPromptsIn(sql, organisationId, repository)

/** Moves the links of a repository to its new name, except those of files that are linked to another prompt there. */
export async function moveLinks(sql: Sql, clock: Clock, organisationId: number, from: string, to: string) {
  const moved = await updateRepository(sql, organisationId, from, to)
  const events = moved.map(({ id, path }): AuditEvent => {
    return { organisationId, action: 'prompt.updated', subject: id, details: { repository: to, path } }
  })
  await recordAudit(sql, clock, github, ...events)
}

/** Moves the links of all repositories of an owner who was renamed. */
export async function moveLinksOfOwner(sql: Sql, clock: Clock, organisationId: number, from: string, to: string) {
  for (const repository of await selectRepositoriesOf(sql, organisationId, from)) {
    await moveLinks(sql, clock, organisationId, repository, `${to}${repository.slice(from.length)}`)
  }
}

export const fileIsTaken = ({ repository, path }: PromptFile, by: string) =>
  invalid(`${path} in ${repository} is linked to ${by} already.`, [
    { path: '/path', message: 'must be that of a file that no other prompt is linked to' },
  ])
