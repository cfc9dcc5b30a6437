import type { Db, Sql } from '../db/client.ts'
import { faultOf } from '../db/faults.ts'
import { ServiceError } from '../errors.ts'
import { requirePrompt } from './find.ts'
import { findPromptAt, type Place, type PromptRow, selectPromptsIn, updatePlace, updateRepository } from './store.ts'

export type LinkedPrompt = { id: number; path: string }

const maxPathLength = 1_000

/** GitHub takes owner/name in any letter case for the same repository. */
export const repositoryKey = (fullName: string): string => fullName.toLowerCase()

/** Checks a repository and a path as an operator gives them, and writes them as they are compared. */
export function readPlace(given: { repository: string; path: string }): Place {
  if (!/^[\w.-]{1,100}\/[\w.-]{1,100}$/.test(given.repository)) {
    throw new ServiceError('validation_error', 'The repository must be owner/name, as GitHub shows it.')
  }
  const path = given.path.replace(/^(?:\.?\/)+/, '')
  const isOdd = path.split('/').some((part) => ['', '.', '..'].includes(part))
  if (isOdd || path.length > maxPathLength || /\p{Cc}/u.test(path) || !path.isWellFormed()) {
    throw new ServiceError(
      'validation_error',
      `The path must be that of a file, from the root of the repository, of at most ${maxPathLength} characters.`,
    )
  }
  return { repository: repositoryKey(given.repository), path }
}

/** Says in which file of a repository a prompt is kept, in place of what was said before. */
export async function linkPrompt(
  db: Db,
  publicId: string,
  given: { repository: string; path: string },
): Promise<PromptRow> {
  const place = readPlace(given)
  const { id, organisationId } = await requirePrompt(db.sql, publicId)
  try {
    return await updatePlace(db.sql, id, place)
  } catch (error) {
    const there = faultOf(error) === 'item' ? await findPromptAt(db.sql, organisationId, place) : undefined
    throw there ? placeIsTaken(place, there) : error
  }
}

/** The prompts that are kept in a repository. */
export const findLinkedPrompts = (sql: Sql, organisationId: number, repository: string): Promise<LinkedPrompt[]> =>
  selectPromptsIn(sql, organisationId, repository)

/** Follows a repository to its new name, but for files that are linked there to another prompt already. */
export const moveLinks = (sql: Sql, organisationId: number, from: string, to: string): Promise<void> =>
  updateRepository(sql, organisationId, from, to)

export const placeIsTaken = ({ repository, path }: Place, by: string) =>
  new ServiceError('validation_error', `${path} in ${repository} is linked to ${by} already.`)
