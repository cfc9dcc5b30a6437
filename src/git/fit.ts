import { NewHistoryEntry } from '../history/schema.ts'
import type { Person } from './entries.ts'

const { user, commit_sha, branch_name, pr_url } = NewHistoryEntry.properties
const { name, email } = user.properties

type Limited = { maxLength?: number }

/**
 * Fits a text of a commit or of a host to what the history accepts. An overlong name must not cost the entry, so it is
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

/** A person as a commit names them, where either may be empty; the others are taken instead, in this order. */
export const fitPerson = (given: Person, ...others: Person[]): Person => ({
  name: [given, ...others].map((person) => fit(person.name, name)).find(Boolean) ?? 'unknown',
  email: [given, ...others].map((person) => fit(person.email, email)).find(Boolean) ?? 'unknown',
})
