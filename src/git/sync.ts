import { maxBatchEntries } from '../history/schema_batch.ts'
import { counted } from '../lib/texts.ts'
import {
  changePrompt,
  createPrompt,
  type LinkedFile,
  listErased,
  listLinked,
  listRepositories,
  readHistory,
  recordBatch,
} from './calls.ts'
import { sanitizeBranch } from './entries.ts'
import { planSync, type SyncedPrompt } from './plan.ts'
import type { Repository } from './repository.ts'
import { syncEntries } from './sync_entries.ts'
import type { SyncOptions } from './sync_options.ts'
import { reportUnreachable, withoutOldNames } from './unreachable.ts'

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

/** Syncs histories from a branch. Checks all before the first change. Repeating it completes an interrupted sync. */
export async function syncRepository(options: SyncOptions): Promise<SyncResult> {
  const { git, repository, call, isDryRun, createGlobs, onProgress, onChange } = options
  const linked = await listLinked(call, repository.name)
  if (!options.isAlso) requireFollowed(repository, linked)
  if (linked.length === 0 && createGlobs.length === 0) await requireNotMoved(options, null)
  const erased = createGlobs.length > 0 ? await listErased(call, repository.name) : []
  const plan = await withoutOldNames(options, await planSync(git, repository, linked, { ...options, erased }))
  const { prompts, commits, lastLandedAt } = plan
  if (linked.length === 0) await requireNotMoved(options, commits)
  // Fails now if the key may not write histories, or if texts are not stored: the prompts are created first.
  await recordBatch(call, { entries: [], with_texts: options.withTexts ?? false, dry_run: true })
  for (const file of plan.skipped) onChange({ change: 'skipped', prompt: null, ...file })

  const known = prompts.filter(({ id }) => id !== null)
  for (const [index, prompt] of prompts.entries()) {
    await createOrMovePrompt(options, prompt)
    onProgress(index + 1, 'prompts', (index + 1) / prompts.length)
  }
  const withoutLiveBranch = await startLiveBranches(options, linked)
  const counts = await syncEntries(options, plan)

  const synced = prompts.flatMap(({ id, path, missing }) => {
    const state = missing === null ? ('present' as const) : ('removed' as const)
    return id === null ? [] : { id, path, state }
  })
  const seen_at = lastLandedAt.toISOString()
  for (let first = 0; first < synced.length && !isDryRun; first += maxBatchEntries) {
    const some = synced.slice(first, first + maxBatchEntries)
    const files = some.map(({ id, state }) => ({ prompt_id: id, state, seen_at }))
    await recordBatch(call, { entries: [], files })
  }
  // A prompt that this sync created has only entries of reachable commits.
  const unreachable = await reportUnreachable(options, plan, known)
  const map = Object.fromEntries(synced.flatMap(({ id, path, state }) => (state === 'present' ? [[path, id]] : [])))
  return { commits: commits.size, prompts: prompts.length, ...counts, unreachable, withoutLiveBranch, map }
}

const maxLookedAt = 5

/**
 * Throws if this repository was moved, perhaps: prompts are linked to another one with the same last name. With `commits`,
 * only if their histories have one of them.
 */
async function requireNotMoved({ call, repository: { name }, service }: SyncOptions, commits: Set<string> | null) {
  const lastOf = (path: string) => path.split('/').at(-1)
  const former = (await listRepositories(call)).find((other) => lastOf(other.repository) === lastOf(name))
  if (!former) return
  const advice =
    `No prompt is linked to ${name}, but ${counted(former.prompts, 'prompt')} to ${former.repository}. If that was ` +
    `moved, run: prompt-signals repositories rename ${former.repository} ${name} ${service}`
  if (!commits) throw new Error(advice)
  for (const { id } of (await listLinked(call, former.repository)).slice(0, maxLookedAt)) {
    const page = await readHistory(call, id, 1)
    if (!page?.data.some(({ commit_sha }) => commits.has(commit_sha))) continue
    throw new Error(`${advice}. If it is a fork, link one prompt to ${name} first.`)
  }
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

/** Creates a prompt, unless this is a dry run, or moves its link. */
async function createOrMovePrompt(options: SyncOptions, prompt: SyncedPrompt): Promise<void> {
  const { call, repository, isDryRun, onChange } = options
  const { id, name, path, movedFrom, missing } = prompt
  if (id === null) {
    if (!isDryRun) prompt.id = await createOrFind(options, name, path)
    return onChange({ change: 'created', prompt: prompt.id, path, name })
  }
  if (movedFrom !== null) {
    const problem = isDryRun ? null : await changePrompt(call, id, { repository: repository.name, path })
    onChange({ change: 'moved', prompt: id, path, from: movedFrom, problem })
  }
  if (missing !== null) onChange({ change: 'missing', prompt: id, path, problem: missing })
}

/** Another sync, or an earlier attempt whose response was lost, may have created it. */
async function createOrFind({ call, repository, isAlso }: SyncOptions, name: string, path: string) {
  const followed = isAlso ? {} : { live_branch: sanitizeBranch(repository.branch) }
  try {
    return await createPrompt(call, { name, repository: repository.name, path, ...followed })
  } catch (error) {
    const found = (await listLinked(call, repository.name)).find((prompt) => prompt.path === path)
    if (!found) throw error
    return found.id
  }
}

/** Makes the branch live for prompts without a live branch. Returns for how many the key may not do that. */
async function startLiveBranches(options: SyncOptions, linked: LinkedFile[]): Promise<number> {
  const { call, repository, isDryRun, isAlso } = options
  const live_branch = sanitizeBranch(repository.branch)
  let rejected = 0
  if (isAlso) return rejected
  for (const { id, liveBranch } of linked) {
    if (liveBranch === null && !isDryRun && (await changePrompt(call, id, { live_branch })) !== null) rejected += 1
  }
  return rejected
}
