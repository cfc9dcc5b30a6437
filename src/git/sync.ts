import { sanitizeBranch } from './entries.ts'
import { planSync, type SyncedPrompt } from './plan.ts'
import { maxEntriesPerCall, type PromptIds, recordEntries, type SyncOptions } from './sync_entries.ts'
import type { SyncTarget } from './target.ts'
import { reportUnreachable } from './unreachable.ts'

export type SyncResult = Record<'commits' | 'prompts' | 'added' | 'changed' | 'known' | 'texts', number> & {
  /** The number of entries of unreachable commits; null when the key may not read histories. */
  unreachable: number | null
  /** From the paths of the files to the ids of their prompts. */
  map: Record<string, string>
}

/** Syncs histories from a branch. Checks all before the first change. Repeating it completes an interrupted sync. */
export async function syncRepository(options: SyncOptions): Promise<SyncResult> {
  const { git, repository, target, isDryRun, onProgress } = options
  const linked = await target.listLinked(repository.name)
  const plan = await planSync(git, repository, linked, options)
  const { prompts, commits, lastLandedAt } = plan
  for (const file of plan.skipped) options.onChange({ change: 'skipped', prompt: null, ...file })

  const ids: PromptIds = new Map()
  for (const prompt of prompts) {
    ids.set(prompt, await createOrMovePrompt(options, repository.name, prompt))
    onProgress(ids.size, 'prompts', ids.size / prompts.length)
  }
  const counts = await recordEntries(options, ids, plan)

  const synced = prompts.flatMap((prompt) => {
    const id = ids.get(prompt)
    return id ? { id, path: prompt.path, isPresent: prompt.missing === null } : []
  })
  const seen_at = lastLandedAt.toISOString()
  for (let first = 0; first < synced.length && !isDryRun; first += maxEntriesPerCall) {
    const files = synced.slice(first, first + maxEntriesPerCall).map(({ id, isPresent }) => {
      return { prompt_id: id, state: isPresent ? ('present' as const) : ('removed' as const), seen_at }
    })
    await target.recordBatch({ entries: [], files, live_branch: sanitizeBranch(repository.branch) })
  }
  const unreachable = await reportUnreachable(options, sanitizeBranch(repository.branch), plan)
  const map = Object.fromEntries(synced.flatMap(({ id, path, isPresent }) => (isPresent ? [[path, id]] : [])))
  return { commits: commits.size, prompts: prompts.length, ...counts, unreachable, map }
}

/** Creates a prompt or moves its link. Returns its id, or null if a dry run does not create it. */
async function createOrMovePrompt(
  options: SyncOptions,
  repository: string,
  prompt: SyncedPrompt,
): Promise<string | null> {
  const { target, isDryRun, onChange } = options
  const { id, name, path, movedFrom, missing } = prompt
  if (id === null) {
    const created = isDryRun ? null : await createOrFind(target, name, repository, path)
    onChange({ change: 'created', prompt: created, path, name })
    return created
  }
  if (movedFrom !== null) {
    const problem = isDryRun ? null : await target.moveLink(id, repository, path)
    onChange({ change: 'moved', prompt: id, path, from: movedFrom, problem })
  }
  if (missing !== null) onChange({ change: 'missing', prompt: id, path, problem: missing })
  return id
}

/** Another sync, or an earlier attempt whose response was lost, may have created it. */
async function createOrFind(target: SyncTarget, name: string, repository: string, path: string): Promise<string> {
  try {
    return await target.createPrompt(name, repository, path)
  } catch (error) {
    const found = (await target.listLinked(repository)).find((prompt) => prompt.path === path)
    if (!found) throw error
    return found.id
  }
}
