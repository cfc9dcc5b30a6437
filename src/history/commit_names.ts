// Commits are compared ignoring letter case. A hash may be shortened to seven characters, as git does; another name may not:
// release-1 is not release-12.

const hash = /^[0-9a-f]{7,64}$/
const shortest = 7

/** The spelling by which commits are compared and found. Only ASCII letters, like Postgres' lower() of the column. */
export const commitKey = (commit: string): string => commit.replace(/[A-Z]+/g, (letters) => letters.toLowerCase())

export function isSameCommit(one: string, other: string): boolean {
  const [a, b] = [commitKey(one), commitKey(other)]
  return a === b || (hash.test(a) && hash.test(b) && (a.startsWith(b) || b.startsWith(a)))
}

/** The keys between which those of all spellings of a commit sort; hardly ever also those of another. */
export function commitRange(commit: string): { low: string; high: string } {
  const key = commitKey(commit)
  const start = key.slice(0, shortest)
  return hash.test(key) ? { low: start, high: `${start}g` } : { low: key, high: key }
}

/** The spellings of commits among the entries of prompts. */
export function createCommitNames(entries: { prompt_id: number; commit_sha: string }[]) {
  const byRange = new Map<string, string[]>()
  const rangeKey = (promptId: number, commit: string) => `${promptId} ${commitRange(commit).low}`
  for (const { prompt_id, commit_sha } of entries) {
    const key = rangeKey(prompt_id, commit_sha)
    const spellings = byRange.get(key)
    if (!spellings) byRange.set(key, [commit_sha])
    else if (!spellings.some((known) => commitKey(known) === commitKey(commit_sha))) spellings.push(commit_sha)
  }
  const near = (promptId: number, commit: string) => byRange.get(rangeKey(promptId, commit)) ?? []
  const spellingsOf = (promptId: number, commit: string) =>
    near(promptId, commit).filter((other) => isSameCommit(other, commit))
  return {
    spellingsOf,
    /** The longest spelling of a commit. A short hash that could be one of two commits is neither. */
    wholeOf(promptId: number, commit: string): string {
      const same = spellingsOf(promptId, commit)
      const longest = same.reduce((a, b) => (b.length > a.length ? b : a), commit)
      const related = near(promptId, commit).filter((other) => same.some((one) => isSameCommit(one, other)))
      if (related.every((other) => isSameCommit(other, longest))) return longest
      return same.find((other) => commitKey(other) === commitKey(commit)) ?? commit
    },
  }
}
