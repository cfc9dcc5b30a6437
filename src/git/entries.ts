// Decides which history entries follow from commits that change prompts, and what their messages say.
import type { PromptEntry } from '../history/record.ts'
import { maxAuthors, NewHistoryEntry } from '../history/schema.ts'
import { type HostKind, hostKindOf } from '../lib/repository_links.ts'
import { cut } from '../lib/texts.ts'

export type Person = NewHistoryEntry['user']

/** What happened to a pull request or a GitLab merge request. */
export type PullRequestEvent = {
  number: number
  /** Null if the number is of another host, from which the repository moved. */
  url: string | null
  title: string | null
  commitSha: string
  by: Person
  /** Empty: those of the commits that it brought. */
  authors: string[]
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
    // The author of the merge commit is who merged.
    const isAuthor = merge.authors.length === 0 && commitSha !== merge.commitSha
    if (isAuthor) entry.entry.authors = [...new Set([...(entry.entry.authors ?? []), author.name])].slice(0, maxAuthors)
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
  { number, url, title, commitSha, by, authors, at }: PullRequestEvent,
): NewHistoryEntry => ({
  action,
  user: by,
  commit_sha: commitSha,
  branch_name: branch,
  pr_number: number,
  pr_url: url,
  created_at: at.toISOString(),
  title,
  authors,
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

/** What a commit message says about how the commit landed on its branch, by the conventions of the host. */
export type MessageMeaning =
  /** The merge commit of a pull request. */
  | { kind: 'pull_request'; number: number; host: HostKind | null }
  /** A squashed pull request, by its title. The host is null if several hosts write this title. */
  | { kind: 'squash'; number: number; host: HostKind | null }
  /** Another branch was merged in. Its commits count, the merge does not. */
  | { kind: 'branch'; branch: string; from: string | null }
  | { kind: 'plain' }

const plain: MessageMeaning = { kind: 'plain' }

/** Whether a commit is what a merged pull request left on the branch. */
export const isPullRequest = (meaning: MessageMeaning): meaning is Extract<MessageMeaning, { number: number }> =>
  meaning.kind === 'pull_request' || meaning.kind === 'squash'

/** At most 9 digits: the number is stored as an integer. */
const number = '([1-9][0-9]{0,8})'

const mergeSubjects: [RegExp, HostKind | null][] = [
  [new RegExp(`^Merge pull request #${number} from `), 'github'],
  [new RegExp(`^Merge pull request '.*' \\(#${number}\\) from `), 'gitea'],
  [new RegExp(`^Merge pull request #${number} in `), 'bitbucket'],
  [new RegExp(`^Merged in .* \\(pull request #${number}\\)$`), 'bitbucket'],
  // A merge commit with the title of its pull request, on GitHub and Gitea.
  [new RegExp(`^Merge\\b.* \\(#${number}\\)$`), null],
]

/** GitLab says it in the body. The project may be missing or named by its full path. */
const gitlabReference = new RegExp(`^See merge request (?:[\\w./~-]+)?!${number}$`, 'm')

/** Bitbucket Data Center since version 7, also for a squash. */
const dataCenterMerge = new RegExp(`^Pull request #${number}: .*\\r?\\n\\r?\\nMerge in \\S+ from \\S+ to `)

const squashTitles: [RegExp, HostKind | null][] = [
  [new RegExp(` \\(#${number}\\)$`), null],
  [new RegExp(` \\(!${number}\\)$`), 'gitlab'],
  [new RegExp(` \\(pull request #${number}\\)$`), 'bitbucket'],
]

const branchSubject =
  /^Merge (?:remote-tracking )?(?:branch(?:es)?|tag|commit) '([^']*)'(?:.*?\bof (\S+))?|^Merge [0-9a-f]{7,64} into [0-9a-f]{7,64}$/

export function parseMessage(message: string): MessageMeaning {
  // Lines may end with CRLF, as the forms of web pages send them.
  const [subject = ''] = message.split(/\r?\n/, 1)
  const inBody = gitlabReference.exec(message)
  if (inBody) return { kind: 'pull_request', number: Number(inBody[1]), host: 'gitlab' }
  const ofDataCenter = dataCenterMerge.exec(message)
  if (ofDataCenter) return { kind: 'pull_request', number: Number(ofDataCenter[1]), host: 'bitbucket' }
  for (const [pattern, host] of mergeSubjects) {
    const found = pattern.exec(subject)
    if (found) return { kind: 'pull_request', number: Number(found[1]), host }
  }
  const branch = branchSubject.exec(subject)
  if (branch) return { kind: 'branch', branch: branch[1] ?? '', from: branch[2] ?? null }
  for (const [pattern, host] of squashTitles) {
    const found = pattern.exec(subject)
    if (found) return { kind: 'squash', number: Number(found[1]), host }
  }
  return plain
}

/** Lines that hosts write where others have the title of the pull request. */
const noTitle = /^(?:See merge request |\* commit ')/
const titleInSubject = /^Merge pull request '(.*)' \(#[0-9]+\) from |^Pull request #[0-9]+: (.*)/

/** The title of the pull request that a commit merged, else the subject of the commit. */
export function titleOf(message: string, meaning = plain): string {
  const [subject = '', body = ''] = message.split(/\r?\n/).filter((line) => line.trim() !== '')
  if (!isPullRequest(meaning)) return subject
  if (meaning.kind === 'squash' || meaning.host === null) {
    return squashTitles.reduce((title, [suffix]) => title.replace(suffix, ''), subject)
  }
  const [, quoted, last] = titleInSubject.exec(subject) ?? []
  return quoted || last || (noTitle.test(body) ? '' : body) || subject
}

/** The committer when GitHub commits for a user: only the author is a person. GitHub Enterprise can change the address. */
export const isGitHub = ({ name, email }: Person): boolean =>
  email === 'noreply@github.com' || name === 'GitHub Enterprise'

/** The kind of the host by its name, else the one that most pull request merges look like; null for neither. */
export function findHost(commits: { meaning: MessageMeaning; committer: Person }[], webUrl: string) {
  const known = hostKindOf(new URL(webUrl).hostname)
  if (known) return known
  const counts = new Map<HostKind, number>()
  for (const { meaning, committer } of commits) {
    if (!isPullRequest(meaning)) continue
    const host = meaning.host ?? (isGitHub(committer) ? 'github' : null)
    if (host) counts.set(host, (counts.get(host) ?? 0) + 1)
  }
  return [...counts].sort(([, a], [, b]) => b - a)[0]?.[0] ?? null
}

/** The hosts on which #12 is a pull request. On the others it is an issue, or unknown. */
const namingByNumber: (HostKind | null)[] = ['github', 'gitea']

export function interpretForHost(meaning: MessageMeaning, host: HostKind | null): MessageMeaning {
  if (!isPullRequest(meaning)) return meaning
  // A merge commit of another host still counts, because the repository may have moved from there.
  const isOfAnyHost = meaning.kind === 'pull_request' && meaning.host !== null
  const isOfHost = meaning.host === null ? namingByNumber.includes(host) : meaning.host === host
  return isOfAnyHost || isOfHost ? meaning : plain
}
