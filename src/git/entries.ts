// Decides which history entries follow from commits that change prompts.
import type { PromptEntry } from '../history/record.ts'
import { NewHistoryEntry } from '../history/schema.ts'
import { cut } from '../lib/texts.ts'

export type Person = NewHistoryEntry['user']

/** What happened to a pull request or a GitLab merge request. */
export type PullRequestEvent = {
  number: number
  url: string
  title: string | null
  commitSha: string
  by: Person
  at: Date
}

/** A commit that changes a prompt's file, with the time when it landed on the branch. */
export type PromptCommit<Prompt> = {
  prompt: Prompt
  commitSha: string
  /** The subject of the commit. */
  title: string | null
  author: Person
  at: Date
  /** The merge that brought it, with the SHA that it left on the branch; null for a commit that was pushed directly. */
  merge: PullRequestEvent | null
}

/** One entry per directly pushed commit. One per merged pull request and prompt, ordered by its last commit. */
export function entriesOf<Prompt>(branch: string, commits: PromptCommit<Prompt>[]): PromptEntry<Prompt>[] {
  const entries = new Set<PromptEntry<Prompt>>()
  const merges = new Map<Prompt, Map<string, PromptEntry<Prompt>>>()
  for (const { prompt, commitSha, title, author, at, merge } of commits) {
    if (!merge) {
      const commit = { commit_sha: commitSha, branch_name: branch, created_at: at.toISOString(), title }
      entries.add({ prompt, entry: { action: 'deployed', user: author, ...commit }, covers: [] })
      continue
    }
    const ofPrompt = merges.get(prompt) ?? new Map<string, PromptEntry<Prompt>>()
    merges.set(prompt, ofPrompt)
    const key = `${merge.commitSha} ${merge.number}`
    const entry = ofPrompt.get(key) ?? {
      prompt,
      entry: pullRequestEntry('pr_merged', branch, merge),
      covers: [],
    }
    ofPrompt.set(key, entry)
    entry.covers.push(commitSha)
    // Deleting it first moves it to the end.
    entries.delete(entry)
    entries.add(entry)
  }
  return [...entries]
}

/** A merge belongs to the branch that was merged into, any other event to the pull request's branch. */
export const pullRequestEntry = (
  action: 'pr_opened' | 'pr_merged' | 'pr_closed',
  branch: string,
  { number, url, title, commitSha, by, at }: PullRequestEvent,
): NewHistoryEntry => ({
  action,
  user: by,
  commit_sha: commitSha,
  branch_name: branch,
  pr_number: number,
  pr_url: url,
  created_at: at.toISOString(),
  title,
})

const { user, commit_sha, branch_name, pr_url, title } = NewHistoryEntry.properties
const { name, email } = user.properties

/** Truncates and strips control characters, so that the entry is not rejected for an odd name. */
function sanitize(given: string, { maxLength }: { maxLength?: number }): string {
  const clean = given
    .toWellFormed()
    .replace(/\p{Cc}+/gu, ' ')
    .trim()
  return cut(clean, maxLength)
}

export const sanitizeSha = (given: string): string => sanitize(given, commit_sha) || 'unknown'
export const sanitizeBranch = (given: string): string => sanitize(given, branch_name) || 'unknown'
export const sanitizeTitle = (given: string): string | null => sanitize(given, title.anyOf[0]) || null
export const sanitizeUrl = (given: string): string => sanitize(given, pr_url.anyOf[0]).replace(/\s/g, '')

/** Takes the first name and the first address that are not empty; a commit may have empty ones. */
export const sanitizePerson = (...people: Person[]): Person => ({
  name: people.map((person) => sanitize(person.name, name)).find(Boolean) ?? 'unknown',
  email: people.map((person) => sanitize(person.email, email)).find(Boolean) ?? 'unknown',
})
