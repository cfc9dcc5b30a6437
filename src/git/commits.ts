import type { Person } from './entries.ts'
import { type MessageMeaning, parseMessage } from './messages.ts'
import { decode, type Git, splitAt } from './program.ts'

/** A commit as the graph has it. Commits are known by their position in the list, in which no parent comes before a child. */
export type Commit = {
  sha: string
  parents: number[]
  /** When it was committed by the clock of its committer, in milliseconds. */
  time: number
  author: Person
  committer: Person
  meaning: MessageMeaning
}

const fields = ['%P', '%ct', '%aN', '%aE', '%cN', '%cE', '%B']
/** What a message says about a merge is in its first lines; the rest of a huge one is not kept. */
const maxFieldLength = 64 * 1024

/** Reads every commit that is reachable from one, that one first. Names and addresses are those of the mailmap. */
export async function readCommits(git: Git, tip: string, onProgress: (read: number) => void): Promise<Commit[]> {
  const format = `--format=${fields.join('%x00')}%x00`
  const mailmap = ['-c', `mailmap.blob=${tip}:.mailmap`]
  const output = git.stream([...mailmap, 'rev-list', '--topo-order', '--encoding=UTF-8', format, tip])
  const people = createInterner()
  const found: (Omit<Commit, 'parents'> & { parents: string[] })[] = []
  let record: string[] = []
  for await (const parts of splitAt('\0', output, maxFieldLength)) {
    for (const part of parts) {
      record.push(part)
      if (record.length < fields.length) continue
      const [head, time, authorName, authorEmail, committerName, committerEmail, message] = record as string[] & {
        length: 7
      }
      // rev-list writes "commit SHA" on a line of its own before each.
      const [, sha = '', parents = ''] = /commit ([0-9a-f]+)\n(.*)$/s.exec(head as string) ?? []
      found.push({
        sha,
        parents: parents.split(' '),
        time: Number(time) * 1_000,
        author: people(authorName as string, authorEmail as string),
        committer: people(committerName as string, committerEmail as string),
        meaning: parseMessage(message as string),
      })
      record = []
    }
    onProgress(found.length)
  }
  const positions = new Map(found.map(({ sha }, position) => [sha, position]))
  return found.map(({ parents, ...commit }) => ({
    ...commit,
    parents: parents.flatMap((sha) => positions.get(sha) ?? []),
  }))
}

/** The same object for the same person, of whom there are few. */
function createInterner(): (name: string, email: string) => Person {
  const known = new Map<string, Person>()
  return (name, email) => {
    const key = `${name}\0${email}`
    const person = known.get(key) ?? { name: decode(name), email: decode(email) }
    known.set(key, person)
    return person
  }
}
