import type { Outcome } from '../history/record.ts'
import type { HistoryEntry, NewHistoryEntry } from '../history/schema.ts'
import { hashText } from '../history/texts.ts'
import { type EntryOf, sanitizeBranch } from './entries.ts'
import { type Plan, type PlanOptions, planSync, type SkippedFile, type SyncedPrompt } from './plan.ts'
import type { Git } from './program.ts'
import type { Repository } from './repository.ts'
import type { SyncTarget } from './target.ts'
import { readTexts } from './texts.ts'

/** What a sync has done, or what a dry run would do. */
export type SyncChange =
  | ({ change: 'skipped'; prompt: null } & SkippedFile)
  | { change: 'created'; prompt: string | null; path: string; name: string }
  | { change: 'moved'; prompt: string; path: string; from: string; problem: string | null }
  | { change: 'missing'; prompt: string; path: string; problem: string }
  | { change: 'no_text'; prompt: string | null; path: string; problem: string }
  | ({ change: 'added' | 'changed'; prompt: string | null; path: string } & NewHistoryEntry)
  | ({ change: 'unreachable'; prompt: string; path: string; problem: string } & HistoryEntry)

export type SyncResult = Record<'commits' | 'prompts' | 'added' | 'changed' | 'known' | 'texts', number> & {
  /** The number of entries of unreachable commits; null when the key may not read histories. */
  unreachable: number | null
  /** From the paths of the files to the ids of their prompts. */
  map: Record<string, string>
}

type Options = PlanOptions & {
  git: Git
  repository: Repository
  target: SyncTarget
  isDryRun: boolean
  /** Whether the texts of the files are stored, too. */
  withTexts?: boolean
  onChange(change: SyncChange): void
}

/** The public id of each prompt; null for one that a dry run does not create. */
type PromptIds = Map<SyncedPrompt, string | null>

const maxEntriesPerCall = 500
const maxTextsPerCall = 100
/** Half of the largest body that the service accepts. */
const maxBytesPerCall = 500_000
/** A merge that covers more commits than one call takes is sent several times. */
const maxCovered = 500
/** How many histories are read concurrently. */
const concurrency = 8
/** Callers may have recorded entries with other names for a commit. */
const fullHash = /^[0-9a-f]{40,64}$/

/** Syncs histories from a branch. Checks all before the first change. Repeating it completes an interrupted sync. */
export async function syncRepository(options: Options): Promise<SyncResult> {
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
async function createOrMovePrompt(options: Options, repository: string, prompt: SyncedPrompt): Promise<string | null> {
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

async function recordEntries(options: Options, ids: PromptIds, plan: Plan) {
  const { isDryRun, onProgress, onChange } = options
  const counts = { added: 0, changed: 0, known: 0, texts: 0 }
  let done = 0
  let change: Exclude<keyof typeof counts, 'texts'> = 'known'
  for await (const call of callsOf(addTexts(options, ids, plan))) {
    const { outcomes, missing } = await recordCall(options, ids, call)
    if (!isDryRun) counts.texts += await sendTexts(options.target, ids, call, missing)
    for (const [index, { prompt, entry, isLast }] of call.entries()) {
      const outcome = outcomes[index] as Outcome
      // The parts of one entry are reported together: as added if one of them was, else as changed if one was.
      if (outcome === 'added' || (outcome === 'changed' && change === 'known')) change = outcome
      if (!isLast) continue
      counts[change] += 1
      if (change !== 'known') onChange({ change, prompt: ids.get(prompt) ?? null, path: prompt.path, ...entry })
      done += 1
      change = 'known'
    }
    onProgress(done, 'entries', done / plan.entries.length)
  }
  return counts
}

/** Adds the texts to the entries, if they are wanted. Reports once for each prompt why it has none. */
async function* addTexts(options: Options, ids: PromptIds, { entries, pathOf }: Plan): AsyncGenerator<TextEntry> {
  if (!options.withTexts) {
    yield* entries
    return
  }
  const files = entries.map((entry) => {
    const path = pathOf(entry)
    return path === null ? null : { commitSha: entry.entry.commit_sha, path }
  })
  const reported = new Set<SyncedPrompt>()
  let index = 0
  for await (const found of readTexts(options.git, files)) {
    const entry = entries[index] as EntryOf<SyncedPrompt>
    const { prompt } = entry
    index += 1
    if ('text' in found) {
      yield { ...entry, text: { hash: hashText(found.text), text: found.text } }
      continue
    }
    if (found.problem !== null && !reported.has(prompt)) {
      reported.add(prompt)
      const problem = `${found.problem} at ${entry.entry.commit_sha.slice(0, 8)}; its text is left out`
      options.onChange({ change: 'no_text', prompt: ids.get(prompt) ?? null, path: prompt.path, problem })
    }
    yield entry
  }
}

/** Records one call. All entries of a prompt that a dry run did not create would be added. */
async function recordCall({ target, repository, isDryRun }: Options, ids: PromptIds, call: Part[]) {
  const known = call.flatMap((part) => describePart(ids, part))
  const batch = { entries: known, live_branch: sanitizeBranch(repository.branch), dry_run: isDryRun }
  const { outcomes, missing_texts = [] } = known.length > 0 ? await target.recordBatch(batch) : { outcomes: [] }
  return {
    outcomes: call.map(({ prompt }) => (ids.get(prompt) ? (outcomes.shift() as Outcome) : 'added')),
    missing: new Set(missing_texts),
  }
}

function describePart(ids: PromptIds, { prompt, entry, covers, text }: Part) {
  const id = ids.get(prompt)
  return id ? [{ prompt_id: id, ...entry, covers, ...(text && { text_hash: text.hash }) }] : []
}

/** Sends the texts that the service does not have, with their entries. Returns their number. */
async function sendTexts(target: SyncTarget, ids: PromptIds, call: Part[], missing: Set<string>): Promise<number> {
  const texts = new Map(call.flatMap(({ text }) => (text && missing.has(text.hash) ? [[text.hash, text.text]] : [])))
  const send = (hashes: Set<string>) =>
    target.recordBatch({
      entries: call.filter(({ text }) => text && hashes.has(text.hash)).flatMap((part) => describePart(ids, part)),
      texts: [...hashes].map((hash) => texts.get(hash) as string),
    })
  let hashes = new Set<string>()
  let bytes = 0
  for (const [hash, text] of texts) {
    const size = Buffer.byteLength(JSON.stringify(text))
    if (hashes.size === maxTextsPerCall || (hashes.size > 0 && bytes + size > maxBytesPerCall)) {
      await send(hashes)
      hashes = new Set()
      bytes = 0
    }
    hashes.add(hash)
    bytes += size
  }
  if (hashes.size > 0) await send(hashes)
  return texts.size
}

type TextEntry = EntryOf<SyncedPrompt> & { text?: { hash: string; text: string } }

/** An entry, or one of the consecutive parts of a merge that covers many commits. */
type Part = TextEntry & { isLast: boolean }

/** Groups the entries by what one call takes. */
async function* callsOf(entries: AsyncIterable<TextEntry>): AsyncGenerator<Part[]> {
  let call: Part[] = []
  let bytes = 0
  for await (const entry of entries) {
    for (const part of splitCovered(entry)) {
      const size = Buffer.byteLength(JSON.stringify([part.entry, part.covers]))
      if (call.length === maxEntriesPerCall || (call.length > 0 && bytes + size > maxBytesPerCall)) {
        yield call
        call = []
        bytes = 0
      }
      call.push(part)
      bytes += size
    }
  }
  if (call.length > 0) yield call
}

function splitCovered({ covers, ...entry }: TextEntry): Part[] {
  const parts = Math.max(1, Math.ceil(covers.length / maxCovered))
  return Array.from({ length: parts }, (_, part) => ({
    ...entry,
    covers: covers.slice(part * maxCovered, (part + 1) * maxCovered),
    isLast: part === parts - 1,
  }))
}

/** Reports and counts entries of unreachable commits; null if the key may not read them. No action could record this. */
async function reportUnreachable(options: Options, branch: string, plan: Plan): Promise<number | null> {
  const { target, onChange, onProgress } = options
  const { prompts, commits, lastLandedAt } = plan
  const isUnreachable = ({ action, branch_name, commit_sha }: HistoryEntry) => {
    const isOfBranch = branch_name === branch && (action === 'deployed' || action === 'pr_merged')
    return isOfBranch && fullHash.test(commit_sha) && !commits.has(commit_sha)
  }
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
        const problem = `is not on ${branch} any more${isOlder ? '' : ', or the clone is behind'}`
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
