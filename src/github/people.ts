import { NewHistoryEntry } from '../history/schema.ts'
import type { Account, Commit } from './schema.ts'

export type Person = { name: string; email: string }

const { user, commit_sha, branch_name, pr_url } = NewHistoryEntry.properties
const { name, email } = user.properties

type Limited = { maxLength?: number }

/**
 * Fits a text of GitHub's to what the history accepts. An overlong name must not cost the entry, so it is
 * shortened and cleaned rather than rejected.
 */
function fit(given: string, { maxLength }: Limited): string {
  const clean = given
    .toWellFormed()
    .replace(/\p{Cc}+/gu, ' ')
    .trim()
  // Half of a character that the cut went through is dropped with it.
  return clean.slice(0, maxLength).replace(/[\ud800-\udbff]$/, '')
}

export const fitSha = (given: string): string => fit(given, commit_sha) || 'unknown'
export const fitBranch = (given: string): string => fit(given, branch_name) || 'unknown'
export const fitUrl = (given: string): string => fit(given, pr_url.anyOf[0]).replace(/\s/g, '')

/** The author of a commit, as the commit says. */
export function authorOf({ author }: Commit): Person {
  const { username } = author
  return {
    name: fit(author.name ?? '', name) || fit(username ?? '', name) || 'unknown',
    email: fit(author.email ?? '', email) || fit(noReply(username || 'unknown'), email),
  }
}

/** An account by the address that GitHub gives it; one that was deleted is shown as ghost, as GitHub does. */
export function accountPerson(account: Account | null | undefined): Person {
  const { login, id } = account ?? { login: 'ghost', id: 10_137 }
  return { name: fit(login, name) || 'unknown', email: fit(noReply(`${id}+${login}`), email) }
}

const noReply = (local: string) => `${local}@users.noreply.github.com`
