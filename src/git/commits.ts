import type { HostKind } from '../lib/repository_links.ts'
import { type Person, sanitizeTitle } from './entries.ts'
import { findHost, interpretForHost, type MessageMeaning, parseMessage, titleOf } from './messages.ts'
import { decode, type Git, splitAt } from './program.ts'

export type Commit = {
  sha: string
  /** In the list of all commits, in which every commit comes before its parents. */
  position: number
  parents: Commit[]
  /** The committer's clock, in milliseconds. */
  time: number
  author: Person
  committer: Person
  meaning: MessageMeaning
}

const fields = ['%P', '%ct', '%aN', '%aE', '%cN', '%cE', '%B']
type FieldValues = [string, string, string, string, string, string, string]

/** Reads every commit reachable from the tip, itself first, and finds the host. Names follow the branch's mailmap. */
export async function readCommits(
  git: Git,
  { gitDir, tip, webUrl }: { gitDir: string; tip: string; webUrl: string },
  onProgress: (read: number) => void,
): Promise<{ commits: Commit[]; host: HostKind | null }> {
  const format = `--format=${fields.join('%x00')}%x00`
  // Run in the git folder, because git would also read a mailmap in the work tree, whatever kind of file it is. With
  // --bare, because git may be configured not to look for a repository there (safe.bareRepository).
  const mailmap = ['-C', gitDir, '--bare', '-c', `mailmap.blob=${tip}:.mailmap`]
  const output = git.stream([...mailmap, 'rev-list', '--topo-order', '--encoding=UTF-8', format, tip])
  const personOf = createInterner()
  const commits: Commit[] = []
  const parentShas: string[][] = []
  let record: string[] = []
  for await (const parts of splitAt('\0', output)) {
    for (const part of parts) {
      record.push(part)
      if (record.length < fields.length) continue
      const [head, time, authorName, authorEmail, committerName, committerEmail, message] = record as FieldValues
      record = []
      // rev-list writes "commit SHA" on a separate line before each.
      const [, sha = '', parents = ''] = /commit ([0-9a-f]+)\n(.*)$/s.exec(head) ?? []
      const people = { author: personOf(authorName, authorEmail), committer: personOf(committerName, committerEmail) }
      const common = { time: Number(time) * 1_000, ...people, meaning: parseMessage(message) }
      commits.push({ sha, position: commits.length, parents: [], ...common })
      parentShas.push(parents.split(' '))
    }
    onProgress(commits.length)
  }
  const host = findHost(commits, webUrl)
  const bySha = new Map(commits.map((commit) => [commit.sha, commit]))
  for (const commit of commits) {
    commit.meaning = interpretForHost(commit.meaning, host)
    commit.parents = (parentShas[commit.position] ?? []).flatMap((sha) => bySha.get(sha) ?? [])
  }
  return { commits, host }
}

/** Reads the titles of some commits. Those of all commits would need too much memory. */
export async function readTitles(git: Git, commits: Commit[]): Promise<Map<Commit, string | null>> {
  const titles = new Map<Commit, string | null>()
  if (commits.length === 0) return titles
  const bySha = new Map(commits.map((commit) => [commit.sha, commit]))
  const args = ['rev-list', '--no-walk=unsorted', '--stdin', '--encoding=UTF-8', '--format=%B%x00']
  const output = git.stream(args, [...bySha.keys()].map((sha) => `${sha}\n`).join(''))
  for await (const parts of splitAt('\0', output)) {
    for (const part of parts) {
      const [, sha = '', message = ''] = /^\n?commit ([0-9a-f]+)\n(.*)$/s.exec(part) ?? []
      const commit = bySha.get(sha) as Commit
      titles.set(commit, sanitizeTitle(decode(titleOf(message, commit.meaning))))
    }
  }
  return titles
}

/** Returns the same object for the same person: there are many commits and few people. */
function createInterner(): (name: string, email: string) => Person {
  const known = new Map<string, Person>()
  return (name, email) => {
    const key = `${name}\0${email}`
    // Git leaves the placeholders of a line that it cannot parse.
    const isBroken = /^%[ac]N$/.test(name)
    const person =
      known.get(key) ??
      (isBroken ? { name: 'unknown', email: 'unknown' } : { name: decode(name), email: decode(email) })
    known.set(key, person)
    return person
  }
}
