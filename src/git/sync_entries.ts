// Records the entries of a plan, in as few calls as their sizes allow.
import type { Outcome } from '../history/reconcile.ts'
import type { PromptEntry } from '../history/record.ts'
import { type HistoryEntry, maxBatchEntries, maxBatchTexts, type NewHistoryEntry } from '../history/schema.ts'
import { hashText } from '../history/texts.ts'
import { sanitizeBranch } from './entries.ts'
import type { Plan, PlanOptions, SkippedFile, SyncedPrompt } from './plan.ts'
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

export type SyncOptions = PlanOptions & {
  git: Git
  repository: Repository
  target: SyncTarget
  isDryRun: boolean
  /** Whether the texts of the files are stored, too. */
  withTexts?: boolean
  onChange(change: SyncChange): void
}

/** The public id of each prompt; null for one that a dry run does not create. */
export type PromptIds = Map<SyncedPrompt, string | null>

type TextEntry = PromptEntry<SyncedPrompt> & { text?: { hash: string; text: string } }

/** An entry, or one of the consecutive parts of a merge that covers many commits. */
type Part = TextEntry & { isLast: boolean }

/** Half of the largest body that the service accepts. */
const maxBytesPerCall = 500_000

const sizeOf = (value: unknown): number => Buffer.byteLength(JSON.stringify(value))
const sizeOfPart = ({ entry, covers }: Part) => sizeOf([entry, covers])

export async function recordEntries(options: SyncOptions, ids: PromptIds, plan: Plan) {
  const { isDryRun, onProgress, onChange } = options
  const counts = { added: 0, changed: 0, known: 0, texts: 0 }
  let done = 0
  let change: Exclude<keyof typeof counts, 'texts'> = 'known'
  for await (const call of inCalls(splitCovered(addTexts(options, ids, plan)), sizeOfPart, maxBatchEntries)) {
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
async function* addTexts(options: SyncOptions, ids: PromptIds, { entries, pathOf }: Plan): AsyncGenerator<TextEntry> {
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
    const entry = entries[index] as PromptEntry<SyncedPrompt>
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
async function recordCall({ target, repository, isDryRun }: SyncOptions, ids: PromptIds, call: Part[]) {
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
  for await (const some of inCalls(texts, ([, text]) => sizeOf(text), maxBatchTexts)) {
    const sent = new Map(some)
    await target.recordBatch({
      entries: call.filter(({ text }) => text && sent.has(text.hash)).flatMap((part) => describePart(ids, part)),
      texts: [...sent.values()],
    })
  }
  return texts.size
}

/** Groups items by what one call takes: at least one, at most `maxItems`, and no more than the largest body. */
async function* inCalls<T>(
  items: Iterable<T> | AsyncIterable<T>,
  sizeOfItem: (item: T) => number,
  maxItems: number,
): AsyncGenerator<T[]> {
  let call: T[] = []
  let bytes = 0
  for await (const item of items) {
    const size = sizeOfItem(item)
    if (call.length === maxItems || (call.length > 0 && bytes + size > maxBytesPerCall)) {
      yield call
      call = []
      bytes = 0
    }
    call.push(item)
    bytes += size
  }
  if (call.length > 0) yield call
}

/** A merge that covers more commits than one call takes is sent several times. */
async function* splitCovered(entries: AsyncIterable<TextEntry>): AsyncGenerator<Part> {
  for await (const { covers, ...entry } of entries) {
    const parts = Math.max(1, Math.ceil(covers.length / maxBatchEntries))
    for (let part = 0; part < parts; part += 1) {
      const some = covers.slice(part * maxBatchEntries, (part + 1) * maxBatchEntries)
      yield { ...entry, covers: some, isLast: part === parts - 1 }
    }
  }
}
