import type { EntryOutcome } from '../history/reconcile.ts'
import type { PromptEntry } from '../history/record.ts'
import {
  type HistoryEntry,
  liveActions,
  maxBatchEntries,
  maxCoveredCommits,
  type NewHistoryEntry,
} from '../history/schema.ts'
import { counted } from '../lib/texts.ts'
import { sanitizeBranch } from './entries.ts'
import { type Plan, type PlanOptions, planSync, type SkippedFile, type SyncedPrompt } from './plan.ts'
import { encode, fullSha, type Git } from './program.ts'
import { readTexts } from './read.ts'
import { escapePath, type Repository } from './repository.ts'
import type { LinkedFile, SyncTarget } from './target.ts'

/** What a sync has done, or what a dry run would do. */
export type SyncChange =
  | ({ change: 'skipped'; prompt: null } & SkippedFile)
  | { change: 'created'; prompt: string | null; path: string; name: string }
  | { change: 'moved'; prompt: string; path: string; from: string; problem: string | null }
  | { change: 'missing'; prompt: string; path: string; problem: string }
  | { change: 'no_text'; prompt: string | null; path: string; problem: string }
  | ({ change: 'added' | 'changed'; prompt: string | null; path: string } & NewHistoryEntry)
  | ({ change: 'unreachable'; prompt: string; path: string; problem: string } & HistoryEntry)

export type SyncOptions = PlanOptions & {
  git: Git
  repository: Repository
  target: SyncTarget
  isDryRun: boolean
  /** Whether the texts of the files are stored, too. */
  withTexts?: boolean
  /** Whether the branch is recorded beside the one that the prompts follow. */
  isAlso?: boolean
  /** The option that names the service in a command. */
  service: string
  onChange(change: SyncChange): void
}

/** The public id of each prompt; null for one that a dry run does not create. */
type PromptIds = Map<SyncedPrompt, string | null>

type EntryToSync = PromptEntry<SyncedPrompt> & { text?: string }

export type SyncResult = Record<
  'commits' | 'prompts' | 'added' | 'changed' | 'known' | 'texts' | 'unreadable',
  number
> & {
  /** The number of prompts whose live branch is not set, because the key may not change them. */
  withoutLiveBranch: number
  /** The number of entries of unreachable commits; null when the key may not read histories. */
  unreachable: number | null
  /** From the paths of the files to the ids of their prompts. */
  map: Record<string, string>
}

/** How many histories are read concurrently. */
const concurrency = 8
/** Half of the largest body that the service accepts. */
const maxBytesPerCall = 500_000

/** Syncs histories from a branch. Checks all before the first change. Repeating it completes an interrupted sync. */
export async function syncRepository(options: SyncOptions): Promise<SyncResult> {
  const { git, repository, target, isDryRun, onProgress } = options
  const linked = await target.listLinked(repository.name)
  if (!options.isAlso) requireFollowed(repository, linked)
  const former = linked.length === 0 ? await findFormer(options) : undefined
  if (former && options.createGlobs.length === 0) throw new Error(former.advice)
  const erased = options.createGlobs.length > 0 ? await target.listErased(repository.name) : []
  const plan = await withoutOldNames(options, await planSync(git, repository, linked, { ...options, erased }))
  const { prompts, commits, lastLandedAt } = plan
  if (former && (await hasCommitOf(target, former.repository, commits))) {
    throw new Error(`${former.advice}. If it is a fork, link one prompt to ${repository.name} first.`)
  }
  // Fails now if the key may not write histories, or if texts are not stored: the prompts are created first.
  await target.recordBatch({ entries: [], with_texts: options.withTexts ?? false, dry_run: true })
  for (const file of plan.skipped) options.onChange({ change: 'skipped', prompt: null, ...file })

  const ids: PromptIds = new Map()
  for (const prompt of prompts) {
    ids.set(prompt, await createOrMovePrompt(options, prompt))
    onProgress(ids.size, 'prompts', ids.size / prompts.length)
  }
  const withoutLiveBranch = await startLiveBranches(options, linked)
  const counts = await syncEntries(options, ids, plan)

  const synced = prompts.flatMap((prompt) => {
    const id = ids.get(prompt)
    return id ? { id, path: prompt.path, isPresent: prompt.missing === null } : []
  })
  const seen_at = lastLandedAt.toISOString()
  for (let first = 0; first < synced.length && !isDryRun; first += maxBatchEntries) {
    const files = synced.slice(first, first + maxBatchEntries).map(({ id, isPresent }) => {
      return { prompt_id: id, state: isPresent ? ('present' as const) : ('removed' as const), seen_at }
    })
    await target.recordBatch({ entries: [], files })
  }
  const unreachable = await reportUnreachable(options, plan)
  const map = Object.fromEntries(synced.flatMap(({ id, path, isPresent }) => (isPresent ? [[path, id]] : [])))
  return { commits: commits.size, prompts: prompts.length, ...counts, unreachable, withoutLiveBranch, map }
}

/** Finds a repository with prompts and the same last name: the name of this one before it was moved, perhaps. */
async function findFormer({ target, repository: { name }, service }: SyncOptions) {
  const lastOf = (path: string) => path.split('/').at(-1)
  const found = (await target.listRepositories()).find(({ repository }) => lastOf(repository) === lastOf(name))
  if (!found) return undefined
  const { repository, prompts } = found
  const advice =
    `No prompt is linked to ${name}, but ${counted(prompts, 'prompt')} to ${repository}. If that was moved, run: ` +
    `prompt-signals repositories rename ${repository} ${name} ${service}`
  return { repository, advice }
}

const maxLookedAt = 5

/** Whether the histories of prompts of another repository have commits of this one. */
async function hasCommitOf(target: SyncTarget, former: string, commits: Set<string>): Promise<boolean> {
  for (const { id } of (await target.listLinked(former)).slice(0, maxLookedAt)) {
    const page = await target.readHistory(id, 1)
    if (page?.data.some(({ commit_sha }) => commits.has(commit_sha))) return true
  }
  return false
}

/** Throws if prompts follow branches, but none this one: it would become a second history of each. */
function requireFollowed({ branch }: Repository, linked: LinkedFile[]): void {
  const followed = new Set(linked.flatMap(({ liveBranch }) => liveBranch ?? []))
  if (followed.size === 0 || followed.has(sanitizeBranch(branch))) return
  throw new Error(
    `The prompts follow ${[...followed].join(', ')}, not ${branch}. To record ${branch} as well, add --also. If it ` +
      `replaces the other branch: prompts update PROMPT --live-branch ${branch}`,
  )
}

/** Creates a prompt or moves its link. Returns its id, or null if a dry run does not create it. */
async function createOrMovePrompt(options: SyncOptions, prompt: SyncedPrompt): Promise<string | null> {
  const { target, repository, isDryRun, onChange } = options
  const { id, name, path, movedFrom, missing } = prompt
  if (id === null) {
    const created = isDryRun ? null : await createOrFind(options, name, path)
    onChange({ change: 'created', prompt: created, path, name })
    return created
  }
  if (movedFrom !== null) {
    const problem = isDryRun ? null : await target.changePrompt(id, { repository: repository.name, path })
    onChange({ change: 'moved', prompt: id, path, from: movedFrom, problem })
  }
  if (missing !== null) onChange({ change: 'missing', prompt: id, path, problem: missing })
  return id
}

/** Another sync, or an earlier attempt whose response was lost, may have created it. */
async function createOrFind({ target, repository, isAlso }: SyncOptions, name: string, path: string) {
  const followed = isAlso ? {} : { live_branch: sanitizeBranch(repository.branch) }
  try {
    return await target.createPrompt({ name, repository: repository.name, path, ...followed })
  } catch (error) {
    const found = (await target.listLinked(repository.name)).find((prompt) => prompt.path === path)
    if (!found) throw error
    return found.id
  }
}

/** Makes the branch live for prompts without a live branch. Returns for how many the key may not do that. */
async function startLiveBranches(options: SyncOptions, linked: LinkedFile[]): Promise<number> {
  const { target, repository, isDryRun, isAlso } = options
  const live_branch = sanitizeBranch(repository.branch)
  let rejected = 0
  if (isAlso) return rejected
  for (const { id, liveBranch } of linked) {
    if (liveBranch === null && !isDryRun && (await target.changePrompt(id, { live_branch })) !== null) rejected += 1
  }
  return rejected
}

/** Records the entries of a plan, in as few calls as their sizes allow. */
async function syncEntries(options: SyncOptions, ids: PromptIds, plan: Plan) {
  const { isDryRun, onProgress, onChange } = options
  const counts = { added: 0, changed: 0, known: 0, texts: 0, unreadable: 0 }
  const noticed = new Set<SyncedPrompt>()
  let done = 0
  for (const call of inCalls(plan.entries)) {
    const { outcomes, withoutText } = await recordCall(options, ids, call)
    for (const [index, { prompt, entry }] of call.entries()) {
      const outcome = outcomes[index] as EntryOutcome
      const change = outcome === 'covered' ? 'known' : outcome
      counts[change] += 1
      if (change !== 'known') onChange({ change, prompt: ids.get(prompt) ?? null, path: prompt.path, ...entry })
    }
    const { readable, unreadable } = await addTexts(options, plan, withoutText)
    counts.unreadable += unreadable.length
    for (const { one, problem } of unreadable) {
      // Said once for each prompt, and not again by every later sync.
      if (noticed.has(one.prompt) || !(isDryRun || outcomes[call.indexOf(one)] === 'added')) continue
      noticed.add(one.prompt)
      onChange({ change: 'no_text', prompt: ids.get(one.prompt) ?? null, path: one.prompt.path, problem })
    }
    // A text is sent only with an entry that has none yet.
    for (const some of inCalls(readable)) {
      if (isDryRun) continue
      await recordCall(options, ids, some)
      counts.texts += some.length
    }
    done += call.length
    onProgress(done, 'entries', done / plan.entries.length)
  }
  return counts
}

/** Records one call. All entries of a prompt that a dry run did not create would be added. */
async function recordCall(options: SyncOptions, ids: PromptIds, call: EntryToSync[]) {
  const { target, isDryRun, withTexts = false } = options
  const isNew = ({ prompt }: EntryToSync) => !ids.get(prompt)
  const known = call.filter((one) => !isNew(one))
  const entries = known.map(({ prompt, entry, covers: all, text }) => {
    const covers = all.slice(-maxCoveredCommits)
    return { prompt_id: ids.get(prompt) as string, ...entry, covers, ...(text !== undefined && { text }) }
  })
  const batch = { entries, with_texts: withTexts, dry_run: isDryRun }
  const { outcomes, without_text = [] } = known.length > 0 ? await target.recordBatch(batch) : { outcomes: [] }
  return {
    outcomes: call.map((one) => (isNew(one) ? 'added' : (outcomes.shift() as EntryOutcome))),
    withoutText: without_text.map((index) => known[index] as EntryToSync),
  }
}

/** Adds the texts to entries, or says why a file has none. Entries that remove the file are dropped. */
async function addTexts({ git }: SyncOptions, { pathOf }: Plan, entries: EntryToSync[]) {
  const files = entries.map((entry) => ({ commitSha: entry.entry.commit_sha, path: pathOf(entry) }))
  const found = await readTexts(git, files)
  const readable: EntryToSync[] = []
  const unreadable: { one: EntryToSync; problem: string }[] = []
  for (const [index, one] of entries.entries()) {
    const file = found[index] ?? { problem: null }
    if ('text' in file) readable.push({ ...one, text: file.text })
    else if (file.problem !== null) {
      const problem = `${file.problem} at ${one.entry.commit_sha.slice(0, 8)}; its text is left out`
      unreadable.push({ one, problem })
    }
  }
  return { readable, unreadable }
}

/**
 * Groups entries by what one call takes: at least one, at most `maxBatchEntries`, and no more than the largest body. Those of
 * a prompt stay together, as far as they fit: each call announces the newest change of a prompt.
 */
function* inCalls(entries: EntryToSync[]): Generator<EntryToSync[]> {
  let call: EntryToSync[] = []
  let bytes = 0
  const isOneCall = entries.length <= maxBatchEntries
  for (const together of isOneCall ? [entries] : Map.groupBy(entries, ({ prompt }) => prompt).values()) {
    for (const [index, one] of together.entries()) {
      const size = Buffer.byteLength(JSON.stringify([one.entry, one.covers, one.text]))
      const next = index === 0 ? Math.min(together.length, maxBatchEntries) : 1
      if (call.length > 0 && (call.length + next > maxBatchEntries || bytes + size > maxBytesPerCall)) {
        yield call
        call = []
        bytes = 0
      }
      call.push(one)
      bytes += size
    }
  }
  if (call.length > 0) yield call
}

/** Finds entries of the branch whose commits the clone does not have. */
function createUnreachableTest(repository: Repository, { commits }: Plan): (entry: HistoryEntry) => boolean {
  const branch = sanitizeBranch(repository.branch)
  return ({ action, branch_name, commit_sha }) => {
    const isOfBranch = branch_name === branch && liveActions.includes(action)
    // Clients may have recorded entries with other names for a commit.
    return isOfBranch && fullSha.test(commit_sha) && !commits.has(commit_sha)
  }
}

/** In a clone that is behind, a file without a prompt may be the old name of one that was renamed since: creates none. */
async function withoutOldNames({ target, repository }: SyncOptions, plan: Plan): Promise<Plan> {
  const created = plan.prompts.filter(({ id }) => id === null)
  const missing = plan.prompts.flatMap(({ id, missing }) => (id !== null && missing !== null ? id : []))
  const isUnreachable = createUnreachableTest(repository, plan)
  const isLater = (entry: HistoryEntry) => isUnreachable(entry) && new Date(entry.created_at) > plan.lastLandedAt
  for (const id of created.length > 0 ? missing : []) {
    if (!(await target.readHistory(id, 1))?.data.some(isLater)) continue
    const problem = 'may have been renamed: the clone is behind'
    return {
      ...plan,
      prompts: plan.prompts.filter((prompt) => prompt.id !== null),
      entries: plan.entries.filter(({ prompt }) => prompt.id !== null),
      skipped: [...plan.skipped, ...created.map(({ path }) => ({ path: escapePath(encode(path)), problem }))],
    }
  }
  return plan
}

/** Reports and counts entries of unreachable commits; null if the key may not read them. Records nothing. */
async function reportUnreachable(options: SyncOptions, plan: Plan): Promise<number | null> {
  const { target, repository, onChange, onProgress } = options
  const { prompts, lastLandedAt } = plan
  const isUnreachable = createUnreachableTest(repository, plan)
  let count = 0
  for (let start = 0; start < prompts.length; start += concurrency) {
    const some = prompts.slice(start, start + concurrency)
    // A prompt that this sync created has only entries of reachable commits.
    const found = await Promise.all(some.map(({ id }) => (id === null ? [] : findEntries(target, id, isUnreachable))))
    for (const [index, entries] of found.entries()) {
      if (!entries) return null
      const { id, path } = some[index] as { id: string; path: string }
      for (const entry of entries) {
        const isOlder = new Date(entry.created_at) <= lastLandedAt
        const problem = `is not on ${sanitizeBranch(repository.branch)} any more${isOlder ? '' : ', or the clone is behind'}`
        onChange({ change: 'unreachable', prompt: id, path, problem, ...entry })
      }
      count += entries.length
    }
    const done = start + some.length
    onProgress(done, 'histories', done / prompts.length)
  }
  return count
}

/** Returns the entries of a history that match; null when the key may not read it. */
async function findEntries(target: SyncTarget, prompt: string, matches: (entry: HistoryEntry) => boolean) {
  const found: HistoryEntry[] = []
  for (let page = 1, pages = 1; page <= pages; page += 1) {
    const read = await target.readHistory(prompt, page)
    if (!read) return null
    pages = read.pagination.total_pages
    found.push(...read.data.filter(matches))
  }
  return found
}
