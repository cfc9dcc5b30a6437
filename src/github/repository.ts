import type { Clock } from '../clock.ts'
import type { Sql } from '../db/client.ts'
import { parseInstant, storableOrUndefined } from '../lib/times.ts'
import { findLinkedPrompts, type LinkedPrompt, moveLinks, moveLinksOfOwner, repositoryKey } from '../prompts/link.ts'
import type { OrganizationPayload, Repository, RepositoryPayload } from './schema.ts'
import {
  lockRepositoriesOf,
  type RepositoryRef,
  renameRepositories,
  selectRepository,
  upsertRepository,
} from './store.ts'

/**
 * Finds the prompts that are linked to a repository, and lets their links follow when it bears another name than before,
 * however it came by it. A delivery from before the last one does not bring an old name back.
 */
export async function followRepository(
  sql: Sql,
  clock: Clock,
  ref: RepositoryRef,
  { name, seenAt }: { name: string; seenAt: Date },
  previousName: string,
): Promise<LinkedPrompt[]> {
  const known = await selectRepository(sql, ref)
  if (known && known.seenAt > seenAt) return findLinkedPrompts(sql, ref.organisationId, known.name)
  const from = known?.name ?? previousName
  if (from !== name) await moveLinks(sql, clock, ref.organisationId, from, name)
  const linked = await findLinkedPrompts(sql, ref.organisationId, name)
  // Nothing is kept of a repository that no prompt is linked to.
  if (linked.length > 0) await upsertRepository(sql, ref, { name, seenAt })
  return linked
}

/** The name of a repository, and since when it bears it at the latest, by GitHub's clock. */
export function parseRepository(repository: Repository, now: Date): { name: string; seenAt: Date } {
  const times = [parseTimestamp(repository.pushed_at), parseTimestamp(repository.updated_at)].filter(
    (time) => time !== undefined,
  )
  const seenAt = times.length > 0 ? new Date(Math.max(...times.map(Number))) : now
  return { name: repositoryKey(repository.full_name), seenAt }
}

/** GitHub gives a time as seconds since 1970, or as a text. */
export const parseTimestamp = (given: number | string | null | undefined): Date | undefined =>
  typeof given === 'number' ? storableOrUndefined(new Date(given * 1_000)) : parseInstant(given ?? '')

/** What a repository was called before it was renamed or transferred; its name of now for one that was not. */
export function previousName({ changes, repository }: RepositoryPayload): string {
  const [owner, name] = repository.full_name.split('/')
  const { user, organization } = changes?.owner?.from ?? {}
  return repositoryKey(`${(user ?? organization)?.login ?? owner}/${changes?.repository?.name?.from ?? name}`)
}

/**
 * Lets the repositories of an organisation of GitHub's, and the links to them, follow when it is renamed. The event has no
 * time of GitHub's, so that of its arrival counts: a push from before, which comes later, does not bring the old name back.
 */
export async function followOwner(
  sql: Sql,
  clock: Clock,
  organisationId: number,
  { changes, organization }: OrganizationPayload,
): Promise<void> {
  const to = repositoryKey(organization.login)
  const from = repositoryKey(changes?.login?.from ?? to)
  if (from === to) return
  await lockRepositoriesOf(sql, organisationId, from)
  await moveLinksOfOwner(sql, clock, organisationId, from, to)
  await renameRepositories(sql, organisationId, from, to, clock.now())
}
