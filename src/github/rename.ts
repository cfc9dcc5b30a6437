import type { PromptEntry } from '../history/record.ts'
import { moveLinks, repositoryKey } from '../prompts/link.ts'
import type { RepositoryPayload } from './schema.ts'
import { lockRepository, moveRepository } from './store.ts'
import type { Scene } from './touch.ts'

/** Where a repository was that was renamed or transferred; undefined for one that was not. */
export function previousName({ changes, repository }: RepositoryPayload): string | undefined {
  const [owner, name] = repository.full_name.split('/')
  const { user, organization } = changes?.owner?.from ?? {}
  const previous = `${(user ?? organization)?.login ?? owner}/${changes?.repository?.name?.from ?? name}`
  return previous === repository.full_name ? undefined : previous
}

/** Takes the links and all that is remembered along to the new name. */
export const planRename =
  ({ repository }: RepositoryPayload) =>
  async ({ sql, place }: Scene): Promise<PromptEntry[]> => {
    const to = { ...place, repository: repositoryKey(repository.full_name) }
    await lockRepository(sql, to)
    await moveLinks(sql, place.organisationId, place.repository, to.repository)
    await moveRepository(sql, place, to.repository)
    return []
  }
