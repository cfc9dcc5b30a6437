// Which change a signal belongs to, as the documentation words it.

export type Sent = { value: 'positive' | 'negative'; commit?: unknown; at: string }
export type Change = { id: number; commit_sha: string; created_at: string }

/** The change that a signal belongs to, of those that went live, oldest first; undefined for none. */
export function changeOf(changes: Change[], { commit, at }: Sent): { change: Change; isNamed: boolean } | undefined {
  if (typeof commit === 'string' && commit !== '') {
    const whole = changes.findLast(({ commit_sha }) => commit_sha === commit)
    const fitting = commit.length < 7 ? [] : changes.filter(({ commit_sha }) => commit_sha.startsWith(commit))
    const isOne = new Set(fitting.map(({ commit_sha }) => commit_sha)).size === 1
    const change = whole ?? (isOne ? fitting.at(-1) : undefined)
    if (change) return { change, isNamed: true }
  }
  const change = changes.findLast(({ created_at }) => created_at <= at)
  return change && { change, isNamed: false }
}
