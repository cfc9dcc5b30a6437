import { expect, test } from 'bun:test'
import {
  type EntryIdentity,
  type EntryToRecord,
  hasLiveAction,
  type KnownEntry,
  type ReportedEntry,
} from '../../src/history/identity.ts'
import { type EntryOutcome, type MergedCommit, reconcile } from '../../src/history/reconcile.ts'
import { permutationsOf } from '../github/hook.ts'

const minute = (number: number) => new Date(Date.UTC(2026, 0, 1) + number * 60_000)
const url = (number: number) => `https://github.com/acme/prompts/pull/${number}`

/** A deploy of a commit at the minute of the same number. */
const deploy = (commit: number, more: Partial<ReportedEntry> = {}): ReportedEntry => ({
  prompt_id: 1,
  action: 'deployed',
  user_name: 'Ada',
  user_email: 'ada@example.com',
  commit_sha: `c${commit}`,
  branch_name: 'main',
  pr_number: null,
  pr_url: null,
  title: null,
  authors: [],
  created_at: minute(commit),
  in_git: false,
  on_github: true,
  by_call: false,
  as_given: false,
  covers: [],
  isTimed: true,
  ...more,
})
const merge = (commit: number, covers: number[], more: Partial<ReportedEntry> = {}) =>
  deploy(commit, {
    action: 'pr_merged',
    pr_number: 7,
    pr_url: url(7),
    covers: covers.map((covered) => `c${covered}`),
    ...more,
  })
const inGit = { in_git: true, on_github: false }
const byCall = { in_git: false, on_github: false, by_call: true, as_given: true }
const nothing = { entries: [], merged: [], removed: [], live: [] }

/** A history in memory, changed in the way that the store changes the one in the database. */
function createHistory() {
  let entries: KnownEntry[] = []
  const texts = new Map<number, string>()
  let nextId = 1
  const merged = new Map<string, MergedCommit>()
  const removed: EntryIdentity[] = []
  const store = ({ text, ...entry }: KnownEntry): KnownEntry => {
    if (text !== undefined) texts.set(entry.id, text)
    return entry
  }
  const reconcileWith = (reported: ReportedEntry[]) =>
    reconcile(reported, { entries, merged: [...merged.values()], removed, live: entries.filter(hasLiveAction) })
  return {
    report(...reported: ReportedEntry[]): EntryOutcome[] {
      const { outcomes, inserts, updates, deletes, mergedCommits } = reconcileWith(reported)
      const updated = new Map(updates.map(({ to }) => [to.id, store(to)]))
      const deleted = new Set(deletes.map(({ id }) => id))
      entries = entries.filter(({ id }) => !deleted.has(id)).map((entry) => updated.get(entry.id) ?? entry)
      for (const entry of inserts) {
        entries.push(store(knownAs(entry, nextId)))
        nextId += 1
      }
      for (const commit of mergedCommits)
        merged.set(`${commit.prompt_id} ${commit.branch_name} ${commit.commit_sha}`, commit)
      return outcomes
    },
    /** Reports as a sync does: first without the texts, then those that are not stored. Returns what it sent. */
    sync(...reported: ReportedEntry[]): (string | undefined)[] {
      const { stored } = reconcileWith(reported.map(({ text: _, ...entry }) => entry))
      this.report(...reported.map(({ text: _, ...entry }) => entry))
      const lacking = reported.filter((_, index) => stored[index] && !stored[index].has_text)
      this.report(...lacking)
      return lacking.map(({ text }) => text)
    },
    remove(commit: string): void {
      removed.push(...entries.filter(({ commit_sha }) => commit_sha === commit))
      entries = entries.filter(({ commit_sha }) => commit_sha !== commit)
    },
    /** Oldest first. */
    entries: () => entries.toSorted((a, b) => Number(a.created_at) - Number(b.created_at) || a.id - b.id),
    story(): string[] {
      return this.entries().map((entry) => `${entry.action} ${entry.commit_sha} #${entry.pr_number}`)
    },
    texts(): (string | undefined)[] {
      return this.entries().map(({ id }) => texts.get(id))
    },
  }
}

const knownAs = (entry: EntryToRecord, id: number): KnownEntry => {
  return { ...entry, id, is_change: false, has_text: entry.text !== undefined }
}

test('an entry of a client keeps its fields', () => {
  const eve = { user_name: 'Eve', user_email: 'eve@example.com' }
  const history = createHistory()
  history.report(deploy(1, byCall))
  expect(history.report(deploy(1, { ...inGit, ...eve, created_at: minute(9) }))).toEqual(['known'])
  expect(history.entries()).toMatchObject([{ user_name: 'Ada', created_at: minute(1), in_git: true }])
})

test.each([
  ['of the merge commit', [1, 3, 2], 3, 2],
  ['that is newest', [1, 2], 5, 2],
])('the deploy %s becomes the merge and keeps its id', (_, deployed, mergeCommit, expectedId) => {
  const history = createHistory()
  history.report(...deployed.map((commit) => deploy(commit)))
  history.report(merge(mergeCommit, [1, 2]))
  expect(history.entries()).toMatchObject([{ id: expectedId, action: 'pr_merged', created_at: minute(mergeCommit) }])
})

test('a commit that is covered on one branch of one prompt is deployed on other ones', () => {
  const history = createHistory()
  const elsewhere = [deploy(1, { branch_name: 'production' }), deploy(1, { prompt_id: 2 })]
  expect(history.report(merge(3, [1]), deploy(1), ...elsewhere)).toEqual(['added', 'covered', 'added', 'added'])
})

test('a merge that is reported again covers more', () => {
  const history = createHistory()
  expect(history.report(merge(3, []), deploy(1))).toEqual(['added', 'added'])
  expect(history.report(merge(3, [1]))).toEqual(['changed'])
  expect(history.report(merge(3, [1]))).toEqual(['known'])
  expect(history.story()).toEqual(['pr_merged c3 #7'])
})

test('what only says that another source knows an entry too is written and not shown', () => {
  const known = knownAs(deploy(1), 1)
  const { outcomes, updates } = reconcile([deploy(1, inGit)], { ...nothing, entries: [known] })
  expect(outcomes).toEqual(['known'])
  expect(updates).toMatchObject([{ to: { id: 1, in_git: true, on_github: true }, isVisible: false }])
  expect(reconcile([deploy(1)], { ...nothing, entries: [known] }).updates).toEqual([])
})

test('a closing that a client reported is the one of GitHub at its time or just before, not a later one', () => {
  const closed = (at: number, more: Partial<ReportedEntry>) =>
    deploy(3, { action: 'pr_closed', pr_number: 7, pr_url: url(7), created_at: minute(at), ...more })
  const history = createHistory()
  expect(history.report(closed(4, byCall))).toEqual(['added'])
  expect(history.report(closed(6, {}), closed(3, {}), closed(6, byCall))).toEqual(['added', 'known', 'known'])
  expect(history.entries().map(({ created_at }) => created_at)).toEqual([minute(4), minute(6)])
})

test('new entries keep their order, and repeated ones are known', () => {
  const closed = deploy(3, { action: 'pr_closed', pr_number: 7, pr_url: url(7) })
  const history = createHistory()
  const reported = [deploy(2), deploy(1), deploy(2), closed, { ...closed }, { ...closed, created_at: minute(4) }]
  expect(history.report(...reported)).toEqual(['added', 'added', 'known', 'added', 'known', 'added'])
  expect(history.entries().map(({ id, commit_sha }) => `${id} ${commit_sha}`)).toEqual(['2 c1', '1 c2', '3 c3', '4 c3'])
})

/** A deploy of a commit at any minute, reported by a client. */
const called = (commit: string, at: number, more: Partial<ReportedEntry> = {}) =>
  deploy(0, { ...byCall, commit_sha: commit, created_at: minute(at), ...more })

test.each([
  ['at the same time', called('a', 1), 'known'],
  ['later, with nothing in between', called('a', 2), 'known'],
  ['later, after another commit went live', called('a', 4), 'added'],
  ['later, as the last of those that went live', called('b', 4), 'known'],
  ['earlier, before another commit went live', called('a', 0), 'known'],
  ['at the instant at which another commit had gone live', called('a', 3), 'added'],
  ['after a commit that went live at the same time', called('c', 4), 'added'],
  ['on another branch', called('a', 2, { branch_name: 'release' }), 'added'],
  ['after another commit, on a branch where none went live', called('b', 4, { branch_name: 'release' }), 'known'],
  ['of another pull request', called('a', 2, { action: 'pr_merged', pr_number: 8, pr_url: url(8) }), 'added'],
  ['in capital letters', called('A', 2), 'known'],
  ['without a time, after another commit went live', called('a', 4, { isTimed: false }), 'known'],
])('an entry that is reported again %s', (_, again, outcome) => {
  const history = createHistory()
  const opened = called('b', 1, { action: 'pr_opened', branch_name: 'work', pr_number: 9, pr_url: url(9) })
  history.report(called('a', 1), opened, called('b', 1, { branch_name: 'release' }))
  history.report(called('c', 3), called('b', 3))
  expect(history.report(again)).toEqual([outcome as EntryOutcome])
})

const [whole, other] = ['45c48cce2e2d7fbdea1afc51c7c6ad26b0d94e11', '45c48cce00000000000000000000000000000000']

test('a short hash is the same commit in every order, and the longer one is kept', () => {
  const spellings = [
    called(whole, 1),
    called(whole.slice(0, 8).toUpperCase(), 2),
    deploy(3, { commit_sha: whole, ...inGit }),
  ]
  for (const order of permutationsOf(spellings)) {
    const [oneByOne, together] = [createHistory(), createHistory()]
    for (const entry of order) oneByOne.report(entry)
    together.report(...order)
    for (const history of [oneByOne, together]) expect(history.story()).toEqual([`deployed ${whole} #null`])
  }
})

test.each([
  ['could be one of two commits', [whole, other, whole.slice(0, 8)], 3],
  ['is shorter than seven characters', [whole, whole.slice(0, 6)], 2],
  ['is not a hash', ['release-12', 'release-1'], 2],
  ['begins a longer one that is not a whole hash', ['20260101', '20260101123000'], 2],
  ['was taken for two commits, and then is sent in full', [whole, other, '45c48cce', '45c48cce1'], 4],
])('a commit that %s is another one', (_, commits, number) => {
  const history = createHistory()
  for (const [index, commit] of commits.entries()) history.report(called(commit, index))
  expect(history.entries()).toHaveLength(number as number)
  expect(new Set(history.entries().map(({ commit_sha }) => commit_sha))).toEqual(new Set(commits as string[]))
})

test('rollbacks in a batch are told from retries, also when two commits went live in the same instant', () => {
  const batch = ['a', 'b', 'c', 'a', 'b', 'c'].map((commit, index) => called(commit, Math.floor(index / 2)))
  expect(reconcile(batch, nothing).outcomes).toEqual(Array(6).fill('added'))
})

test.each([
  ['the other commit first', [called('a', 0), called('b', 0), called('b', 3)]],
  ['the other commit last', [called('a', 0), called('a', 2), called('b', 2)]],
])('a repeated batch finds no rollback that the first one did not, in one instant with %s', (_, batch) => {
  const history = createHistory()
  expect(history.report(...batch).filter((outcome) => outcome === 'added')).toHaveLength(2)
  expect(history.report(...batch)).toEqual(['known', 'known', 'known'])
})

test('ten thousand rollbacks of a commit, or spellings of a prefix, take little processor time', () => {
  const knownOf = (commitOf: (index: number) => string) =>
    Array.from({ length: 10_000 }, (_, index) => knownAs(called(commitOf(index), 2 * index), index + 1))
  const reported = (commitOf: (index: number) => string) =>
    Array.from({ length: 500 }, (_, index) => called(commitOf(index), 40 * index + 1))
  const hashOf = (index: number) => `abcdef0${index}`.padEnd(40, '0')
  const others = reported(() => 'b').map((entry, index) =>
    knownAs({ ...entry, created_at: minute(40 * index) }, -index),
  )
  const start = process.cpuUsage()
  const rollbacks = reconcile(
    reported(() => 'a'),
    { ...nothing, entries: knownOf(() => 'a'), live: others },
  )
  const spellings = reconcile(
    reported((index) => hashOf(20 * index)),
    { ...nothing, entries: knownOf(hashOf) },
  )
  const { user, system } = process.cpuUsage(start)
  expect(rollbacks.outcomes).toEqual(Array(500).fill('known'))
  expect(spellings.outcomes).toEqual(Array(500).fill('known'))
  expect(user + system).toBeLessThan(1_000_000)
})

test('a removed entry is not brought back by sync or the webhook, but by a client', () => {
  const history = createHistory()
  history.report(deploy(1), merge(2, []))
  history.remove('c1')
  history.remove('c2')
  expect(history.report(deploy(1, inGit), deploy(1), merge(2, [], inGit), merge(2, []))).toEqual(Array(4).fill('known'))
  expect(history.report(deploy(1, byCall))).toEqual(['added'])
})

const worded = (commit: number, text?: string) => deploy(commit, { ...inGit, ...(text !== undefined && { text }) })
const rebased = [worded(1, 'first'), worded(2, 'second')]

test.each<[string, number[], ReportedEntry[], (string | undefined)[]]>([
  ['its last commit that changes the prompt', [1, 2], rebased, ['second']],
  ['none, if its last change removes the file', [1, 2], [worded(1, 'first'), worded(2)], [undefined]],
])('a rebased pull request has the text of %s, in every order', (_, covers, changes, expected) => {
  for (const mergeCommit of [2, 3]) {
    const events = {
      merge: (history: ReturnType<typeof createHistory>) => history.report(merge(mergeCommit, covers)),
      together: (history: ReturnType<typeof createHistory>) => history.sync(...changes),
      apart: (history: ReturnType<typeof createHistory>) => changes.map((one) => history.sync(one)),
    }
    for (const order of permutationsOf(Object.values(events))) {
      const history = createHistory()
      for (const event of [...order, ...order]) event(history)
      expect([history.story(), history.texts()]).toEqual([[`pr_merged c${mergeCommit} #7`], expected])
      expect(history.sync(...changes).filter((text) => text !== undefined)).toEqual([])
    }
  }
})

test('a text is asked for once, for an entry that went live, and is never replaced', () => {
  const history = createHistory()
  const opened = deploy(3, { action: 'pr_opened', pr_number: 7, pr_url: url(7), branch_name: 'warmer' })
  expect(history.sync(worded(1, 'one'), merge(2, [], { ...inGit, text: 'two' }), opened)).toEqual(['one', 'two'])
  expect(history.sync(worded(1, 'one'), merge(2, [], { ...inGit, text: 'two' }))).toEqual([])
  expect(history.report(worded(1, 'another'))).toEqual(['known'])
  // GitHub knows another number of the pull request that the commit merged.
  history.report(merge(4, [], { pr_number: 8 }))
  expect(history.sync(merge(4, [], { ...inGit, text: 'four' }))).toEqual(['four'])
  expect(history.texts()).toEqual(['one', 'two', undefined, 'four'])
})
