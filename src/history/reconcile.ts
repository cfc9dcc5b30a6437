// Decides how the entries of one source, a clone (git) or GitHub's deliveries, change what is known already. The history is
// the same in whichever order the two report, and however often; docs/git.md has the rules.
import type { EntryRow } from './store.ts'

/** An entry to be written, with the rest of its identity and the sources that know it. */
export type EntryToRecord = Omit<EntryRow, 'id'> & {
  prompt_id: number
  reopenings: number
  in_git: boolean
  on_github: boolean
}

export type KnownEntry = EntryToRecord & { id: number }

/** An entry that a source reports. A merge covers the commits that it brought to its branch. */
export type ReportedEntry = EntryToRecord & { covers: string[] }

export type MergedCommit = { prompt_id: number; branch_name: string; commit_sha: string; pr_number: number | null }

/** What became of an entry. A covered commit has no entry, because it belongs to a merge. */
export type Outcome = 'added' | 'changed' | 'known' | 'covered'

/** Outcomes and inserts are in the order of the reported entries. No two inserts have the same identity. */
export type Reconciliation = {
  outcomes: Outcome[]
  inserts: EntryToRecord[]
  /** Readers do not see every update: which sources know an entry is not shown. */
  updates: { from: KnownEntry; to: KnownEntry; isVisible: boolean }[]
  deletes: KnownEntry[]
  mergedCommits: MergedCommit[]
}

/**
 * `known` has all entries of the commits that are reported or covered, and `merged` those of the reported commits that
 * belong to a merge. The caller has locked the prompts, so that neither changes before the result is written.
 */
export function reconcile(reported: ReportedEntry[], known: KnownEntry[], merged: MergedCommit[]): Reconciliation {
  const entries = new KnownEntries(known)
  const covered = new Set(merged.map(mergedKey))
  const mergedCommits: MergedCommit[] = []
  const outcomes = new Map<ReportedEntry, Outcome>()
  const inserts = new Map<string, EntryToRecord>()

  // Merges come first, so that they cover the commits that are reported with them.
  for (const merge of reported.filter(({ action }) => action === 'pr_merged')) {
    // GitHub knows the numbers of its pull requests; in git they are read from messages.
    if (merge.in_git && entries.otherMerges(merge).some((entry) => entry.on_github)) {
      outcomes.set(merge, 'covered')
      continue
    }
    mergedCommits.push(...commitsOf(merge))
    for (const commit of commitsOf(merge)) covered.add(mergedKey(commit))
    const outcome = applyMerge(entries, merge)
    if (outcome) outcomes.set(merge, outcome)
  }
  for (const deploy of reported.filter(({ action }) => action === 'deployed')) {
    const same = entries.find(deploy)
    if (covered.has(mergedKey(deploy))) outcomes.set(deploy, 'covered')
    else if (same) outcomes.set(deploy, entries.replace(same, combine(same, deploy)))
  }
  for (const entry of reported) {
    if (outcomes.has(entry)) continue
    const { covers: _, ...toInsert } = entry
    const isKnown = inserts.has(identityOf(entry)) || entries.find(entry) !== undefined
    outcomes.set(entry, isKnown ? 'known' : 'added')
    if (!isKnown) inserts.set(identityOf(entry), toInsert)
  }
  return {
    outcomes: reported.map((entry) => outcomes.get(entry) as Outcome),
    inserts: [...inserts.values()],
    ...entries.changes(),
    mergedCommits,
  }
}

/** Returns undefined for a merge that is to be inserted. */
function applyMerge(entries: KnownEntries, merge: ReportedEntry): Outcome | undefined {
  const same = entries.find(merge)
  const superseded = findSuperseded(entries, merge)
  const becomesMerge = same ?? superseded.shift()
  if (!becomesMerge) return undefined
  for (const entry of superseded) entries.delete(entry)
  const { covers: _, ...replacement } = merge
  const outcome = entries.replace(becomesMerge, same ? combine(same, merge) : { ...replacement, id: becomesMerge.id })
  return superseded.length > 0 ? 'changed' : outcome
}

/** Finds the entries that are this merge under another name. The first of them is to become the merge. */
function findSuperseded(entries: KnownEntries, merge: ReportedEntry): KnownEntry[] {
  const isOfMerge = (entry: KnownEntry) => Number(entry.commit_sha === merge.commit_sha)
  const deploys = commitsOf(merge)
    .flatMap((commit) => entries.of(commit))
    .filter((entry) => entry.action === 'deployed' && entry.branch_name === merge.branch_name)
    // The deploy of the merge commit, then the newest.
    .sort((a, b) => isOfMerge(b) - isOfMerge(a) || Number(b.created_at) - Number(a.created_at) || b.id - a.id)
  const misnumbered = entries.otherMerges(merge).filter((entry) => entry.in_git && !entry.on_github)
  return merge.on_github ? [...deploys, ...misnumbered] : deploys
}

/** The commits that get no entry because the merge has one. */
const commitsOf = ({ prompt_id, branch_name, pr_number, commit_sha, covers }: ReportedEntry): MergedCommit[] =>
  [...new Set([...covers, commit_sha])].map((commit) => ({ prompt_id, branch_name, commit_sha: commit, pr_number }))

/**
 * Combines an entry with what another source says of it. Git knows the author of a commit by the mailmap; GitHub knows who
 * merged, when something was pushed or merged, and the title of a pull request. An entry that a client recorded gets only
 * a title, if it has none.
 */
function combine(known: KnownEntry, reported: ReportedEntry): KnownEntry {
  const title = known.title ?? reported.title
  if (!known.in_git && !known.on_github) return { ...known, title }
  const { branch_name, pr_url, created_at, user_name, user_email } = reported
  const isNewOnGithub = reported.on_github && !known.on_github
  const knowsUser = known.action === 'deployed' ? reported.in_git : isNewOnGithub
  return {
    ...known,
    ...(isNewOnGithub && { branch_name, pr_url, created_at }),
    ...(knowsUser && { user_name, user_email }),
    title: (knowsUser && reported.title) || title,
    in_git: known.in_git || reported.in_git,
    on_github: known.on_github || reported.on_github,
  }
}

/** What makes two entries the same one. */
export const identityOf = (entry: EntryToRecord): string =>
  `${entry.prompt_id} ${entry.action} ${entry.pr_number} ${entry.reopenings} ${entry.commit_sha}`

const commitKey = ({ prompt_id, commit_sha }: Pick<EntryToRecord, 'prompt_id' | 'commit_sha'>): string =>
  `${prompt_id} ${commit_sha}`

const mergedKey = (commit: Omit<MergedCommit, 'pr_number'>): string => `${commitKey(commit)} ${commit.branch_name}`

const isVisibleChange = (from: KnownEntry, to: KnownEntry): boolean =>
  identityOf(from) !== identityOf(to) ||
  Number(from.created_at) !== Number(to.created_at) ||
  (['user_name', 'user_email', 'branch_name', 'pr_url', 'title'] as const).some((field) => from[field] !== to[field])

/** The known entries as they are changed, by their commits. */
class KnownEntries {
  readonly #byId: Map<number, KnownEntry>
  readonly #idsByCommit = new Map<string, number[]>()

  constructor(private readonly original: KnownEntry[]) {
    this.#byId = new Map(original.map((entry) => [entry.id, entry]))
    for (const entry of original) this.#addToCommit(entry)
  }

  of(commit: Pick<EntryToRecord, 'prompt_id' | 'commit_sha'>): KnownEntry[] {
    const entries = (this.#idsByCommit.get(commitKey(commit)) ?? []).flatMap((id) => this.#byId.get(id) ?? [])
    // An entry that became a merge has another commit.
    return entries.filter((entry) => entry.commit_sha === commit.commit_sha)
  }

  find(entry: EntryToRecord): KnownEntry | undefined {
    return this.of(entry).find((known) => identityOf(known) === identityOf(entry))
  }

  /** The merges of the same commit that have another number. */
  otherMerges(merge: EntryToRecord): KnownEntry[] {
    return this.of(merge).filter((entry) => entry.action === 'pr_merged' && entry.pr_number !== merge.pr_number)
  }

  replace(from: KnownEntry, to: KnownEntry): 'changed' | 'known' {
    this.#byId.set(from.id, to)
    if (to.commit_sha !== from.commit_sha) this.#addToCommit(to)
    return isVisibleChange(from, to) ? 'changed' : 'known'
  }

  delete({ id }: KnownEntry): void {
    this.#byId.delete(id)
  }

  changes(): Pick<Reconciliation, 'updates' | 'deletes'> {
    const updates = this.original.flatMap((from) => {
      const to = this.#byId.get(from.id) ?? from
      const isVisible = isVisibleChange(from, to)
      const isSame = !isVisible && from.in_git === to.in_git && from.on_github === to.on_github
      return isSame ? [] : { from, to, isVisible }
    })
    return { updates, deletes: this.original.filter(({ id }) => !this.#byId.has(id)) }
  }

  #addToCommit(entry: KnownEntry): void {
    const key = commitKey(entry)
    this.#idsByCommit.set(key, [...(this.#idsByCommit.get(key) ?? []), entry.id])
  }
}
