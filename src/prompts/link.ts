import type { Db, Sql } from '../db/client.ts'
import { faultOf } from '../db/faults.ts'
import { ServiceError } from '../errors.ts'
import { requirePrompt } from './find.ts'
import {
  findPromptInFile,
  type PromptFile,
  type PromptRow,
  selectPromptsIn,
  updatePromptFile,
  updateRepository,
} from './store.ts'

export type LinkedPrompt = { id: number; path: string }

const maxPathLength = 1_000

/** GitHub takes owner/name in any letter case for the same repository. */
export const repositoryKey = (fullName: string): string => fullName.toLowerCase()

/** Checks a repository and a path as an operator gives them, and normalises them for comparison. */
export function parsePromptFile(given: { repository: string; path: string }): PromptFile {
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

/** Links a prompt to the file of a repository that it is kept in, instead of an earlier one. */
export async function linkPrompt(
  db: Db,
  publicId: string,
  given: { repository: string; path: string },
): Promise<PromptRow> {
  const file = parsePromptFile(given)
  const { id, organisationId } = await requirePrompt(db.sql, publicId)
  try {
    return await updatePromptFile(db.sql, id, file)
  } catch (error) {
    const linked = faultOf(error) === 'item' ? await findPromptInFile(db.sql, organisationId, file) : undefined
    throw linked ? fileIsTaken(file, linked) : error
  }
}

/** The prompts that are kept in a repository. */
export const findLinkedPrompts = (sql: Sql, organisationId: number, repository: string): Promise<LinkedPrompt[]> =>
  selectPromptsIn(sql, organisationId, repository)

/** Moves the links of a repository to its new name, except those of files that are linked to another prompt there. */
export const moveLinks = (sql: Sql, organisationId: number, from: string, to: string): Promise<void> =>
  updateRepository(sql, organisationId, from, to)

export const fileIsTaken = ({ repository, path }: PromptFile, by: string) =>
  new ServiceError('validation_error', `${path} in ${repository} is linked to ${by} already.`)
