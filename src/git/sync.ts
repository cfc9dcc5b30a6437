import type { Outcome, PromptEntry } from '../history/record.ts'
import type { NewHistoryEntry } from '../history/schema.ts'
import { repositoryKey } from '../prompts/link.ts'
import { fitBranch } from './fit.ts'
import { planSync, type SyncedPrompt } from './plan.ts'
import type { Git } from './program.ts'
import type { Repository } from './repository.ts'
import { reportTakenBack, type TakenBack } from './taken_back.ts'
import type { SyncTarget } from './target.ts'

/** Something that a sync has done, or of a dry run would do. */
export type SyncChange =
  | { change: 'created'; prompt: string | null; path: string; name: string }
  | { change: 'moved'; prompt: string; path: string; from: string; problem: string | null }
  | { change: 'missing'; prompt: string; path: string; problem: string }
  | ({ change: 'added' | 'changed'; prompt: string | null; path: string } & NewHistoryEntry)
  | TakenBack

export type SyncResult = {
  commits: number
  prompts: number
  added: number
  changed: number
  known: number
  /** How many entries are of commits that are not on the branch; null when the histories may not be read. */
  takenBack: number | null
  /** From the paths of the files to the ids of their prompts. */
  map: Record<string, string>
}

type Options = {
  git: Git
  repository: Repository
  target: SyncTarget
  createGlob: string | null
  isDryRun: boolean
  now: Date
  onProgress(done: number, noun: string, share: number | null): void
  onChange(change: SyncChange): void
}

const maxEntriesPerCall = 500
/** Half of what a body may have. */
const maxBytesPerCall = 500_000
/** A merge may cover more commits than one call takes; it is then given several times. */
const maxCovered = 500

/**
 * Makes the histories of the prompts of a repository what its branch says. Everything is read and checked before the
 * first change is made; what an interruption leaves undone, the next sync does.
 */
export async function syncRepository(options: Options): Promise<SyncResult> {
  const { git, target, isDryRun, onProgress, onChange } = options
  const repository = { ...options.repository, fullName: repositoryKey(options.repository.fullName) }
  const linked = await target.listLinked(repository.fullName)
  const plan = await planSync(git, repository, linked, options)
  const { prompts, entries, commits, lastArrivalAt } = plan

  const ids: (string | null)[] = []
  for (const [done, prompt] of prompts.entries()) {
    ids.push(await createOrMovePrompt(options, repository.fullName, prompt))
    onProgress(done + 1, 'prompts', (done + 1) / prompts.length)
  }

  const counts = { added: 0, changed: 0, known: 0 }
  let done = 0
  let change: keyof typeof counts = 'known'
  for (const call of callsOf(entries)) {
    const outcomes = await recordCall(target, ids, call, isDryRun)
    for (const [index, { prompt, entry, isLast }] of call.entries()) {
      const outcome = outcomes[index] as Outcome
      // An entry in several parts is reported once: as added if one of them has added it, and else as changed if one has.
      if (outcome === 'added' || (outcome === 'changed' && change === 'known')) change = outcome
      if (!isLast) continue
      counts[change] += 1
      if (change !== 'known') {
        const { path } = prompts[prompt] as SyncedPrompt
        onChange({ change, prompt: ids[prompt] ?? null, path, ...entry })
      }
      done += 1
      change = 'known'
    }
    onProgress(done, 'entries', done / entries.length)
  }
  const files = prompts.flatMap(({ missing }, index) => {
    const state: 'present' | 'removed' = missing === null ? 'present' : 'removed'
    return ids[index] ? { prompt_id: ids[index], state, seen_at: lastArrivalAt.toISOString() } : []
  })
  for (let first = 0; first < files.length && !isDryRun; first += maxEntriesPerCall) {
    await target.recordBatch({ entries: [], files: files.slice(first, first + maxEntriesPerCall) })
  }
  const takenBack = await reportTakenBack(target, fitBranch(repository.branch), plan, options)
  const map = prompts.flatMap(({ path, missing }, index) => (ids[index] && !missing ? [[path, ids[index]]] : []))
  return { commits: commits.size, prompts: prompts.length, ...counts, takenBack, map: Object.fromEntries(map) }
}

/** Makes a prompt, or moves its link, and returns its id; null for one that a dry run does not make. */
async function createOrMovePrompt(
  { target, isDryRun, onChange }: Options,
  repository: string,
  { id, name, path, movedFrom, missing }: SyncedPrompt,
): Promise<string | null> {
  if (id === null) {
    const made = isDryRun ? null : await createOrFind(target, name, repository, path)
    onChange({ change: 'created', prompt: made, path, name })
    return made
  }
  if (movedFrom !== null) {
    const problem = isDryRun ? null : await target.moveLink(id, repository, path)
    onChange({ change: 'moved', prompt: id, path, from: movedFrom, problem })
  }
  if (missing !== null) onChange({ change: 'missing', prompt: id, path, problem: missing })
  return id
}

/** Another sync, or an earlier attempt whose answer was lost, may have made it. */
async function createOrFind(target: SyncTarget, name: string, repository: string, path: string): Promise<string> {
  try {
    return await target.createPrompt(name, repository, path)
  } catch (error) {
    const found = (await target.listLinked(repository)).find((prompt) => prompt.path === path)
    if (!found) throw error
    return found.id
  }
}

/** What a dry run would add to a prompt that it has not made is all new. */
async function recordCall(
  target: SyncTarget,
  ids: (string | null)[],
  call: PromptEntry[],
  isDryRun: boolean,
): Promise<Outcome[]> {
  const known = call.flatMap(({ prompt, entry, covers = [] }) => {
    const id = ids[prompt]
    return id ? { prompt_id: id, ...entry, covers } : []
  })
  const outcomes = known.length > 0 ? await target.recordBatch({ entries: known, dry_run: isDryRun }) : []
  return call.map(({ prompt }) => (ids[prompt] ? (outcomes.shift() as Outcome) : 'added'))
}

/** An entry, or one of the parts of a merge that covers many commits, which follow each other. */
type Part = PromptEntry & { isLast: boolean }

/** The entries in groups that one call takes. */
function* callsOf(entries: PromptEntry[]): Iterable<Part[]> {
  let call: Part[] = []
  let bytes = 0
  for (const part of entries.flatMap(splitCovered)) {
    const size = Buffer.byteLength(JSON.stringify(part))
    if (call.length === maxEntriesPerCall || (call.length > 0 && bytes + size > maxBytesPerCall)) {
      yield call
      call = []
      bytes = 0
    }
    call.push(part)
    bytes += size
  }
  if (call.length > 0) yield call
}

function splitCovered({ covers = [], ...entry }: PromptEntry): Part[] {
  const parts = Math.max(1, Math.ceil(covers.length / maxCovered))
  return Array.from({ length: parts }, (_, part) => ({
    ...entry,
    covers: covers.slice(part * maxCovered, (part + 1) * maxCovered),
    isLast: part === parts - 1,
  }))
}
