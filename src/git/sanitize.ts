import { NewHistoryEntry } from '../history/schema.ts'
import type { Person } from './entries.ts'

const { user, commit_sha, branch_name, pr_url } = NewHistoryEntry.properties
const { name, email } = user.properties

/** Truncates and strips control characters: a name from a commit or a host must not cost the entry. */
function sanitize(given: string, { maxLength }: { maxLength?: number }): string {
  const clean = given
    .toWellFormed()
    .replace(/\p{Cc}+/gu, ' ')
    .trim()
  // Drops half of a surrogate pair that the cut went through.
  return clean.slice(0, maxLength).replace(/[\ud800-\udbff]$/, '')
}

export const sanitizeSha = (given: string): string => sanitize(given, commit_sha) || 'unknown'
export const sanitizeBranch = (given: string): string => sanitize(given, branch_name) || 'unknown'
export const sanitizeUrl = (given: string): string => sanitize(given, pr_url.anyOf[0]).replace(/\s/g, '')

/** Takes name and address from the first person that has one; a commit may have an empty one. */
export const sanitizePerson = (...people: Person[]): Person => ({
  name: people.map((person) => sanitize(person.name, name)).find(Boolean) ?? 'unknown',
  email: people.map((person) => sanitize(person.email, email)).find(Boolean) ?? 'unknown',
})
