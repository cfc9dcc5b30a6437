// Which repository a delivery is about: GitHub Enterprise, and servers that imitate GitHub, have their own hosts.
import { createHash } from 'node:crypto'
import { parseRepository } from '../lib/repository_links.ts'
import type { Repository } from './schema.ts'

type Sender = Pick<Repository, 'html_url'>

const hostOf = ({ html_url }: Sender): string =>
  html_url && URL.canParse(html_url) ? new URL(html_url).host : 'github.com'

/** The name that links are stored by. Undefined for one that no prompt can be linked to. */
export const repositoryNameOf = (repository: Sender & { full_name: string }): string | undefined =>
  parseRepository(`${hostOf(repository)}/${repository.full_name}`)

/** GitHub's id. Every other server counts its own from 1, so theirs are negative hashes of host and id. */
export function repositoryIdOf(repository: Sender & { id: number }): number {
  const host = hostOf(repository)
  if (host === 'github.com') return repository.id
  return -createHash('sha256').update(`${host} ${repository.id}`).digest().readUIntBE(0, 6)
}
