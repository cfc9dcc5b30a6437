// Records the entries of a plan, in as few calls as their sizes allow.
import type { Outcome } from '../history/reconcile.ts'
import type { PromptEntry } from '../history/record.ts'
import {
  type HistoryEntry,
  maxBatchEntries,
  maxBatchTexts,
  maxCoveredCommits,
  type NewHistoryEntry,
} from '../history/schema.ts'
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

/** Half of the largest body that the service accepts. */
const maxBytesPerCall = 500_000

const sizeOf = (value: unknown): number => Buffer.byteLength(JSON.stringify(value))
const sizeOfEntry = ({ entry, covers }: TextEntry) => sizeOf([entry, covers])

export async function recordEntries(options: SyncOptions, ids: PromptIds, plan: Plan) {
  const { isDryRun, onProgress, onChange } = options
  const counts = { added: 0, changed: 0, known: 0, texts: 0 }
  let done = 0
  for await (const call of inCalls(addTexts(options, ids, plan), sizeOfEntry, maxBatchEntries)) {
    const { outcomes, missing } = await recordCall(options, ids, call)
    if (!isDryRun) counts.texts += await sendTexts(options.target, ids, call, missing)
    for (const [index, { prompt, entry }] of call.entries()) {
      const outcome = outcomes[index] as Outcome
      const change = outcome === 'covered' ? 'known' : outcome
      counts[change] += 1
      if (change !== 'known') onChange({ change, prompt: ids.get(prompt) ?? null, path: prompt.path, ...entry })
    }
    done += call.length
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
async function recordCall({ target, repository, isDryRun }: SyncOptions, ids: PromptIds, call: TextEntry[]) {
  const known = call.flatMap((one) => describeEntry(ids, one))
  const batch = { entries: known, live_branch: sanitizeBranch(repository.branch), dry_run: isDryRun }
  const { outcomes, missing_texts = [] } = known.length > 0 ? await target.recordBatch(batch) : { outcomes: [] }
  return {
    outcomes: call.map(({ prompt }) => (ids.get(prompt) ? (outcomes.shift() as Outcome) : 'added')),
    missing: new Set(missing_texts),
  }
}

function describeEntry(ids: PromptIds, { prompt, entry, covers: all, text }: TextEntry) {
  const id = ids.get(prompt)
  const covers = all.slice(-maxCoveredCommits)
  return id ? [{ prompt_id: id, ...entry, covers, ...(text && { text_hash: text.hash }) }] : []
}

/** Sends the texts that the service does not have, with their entries. Returns their number. */
async function sendTexts(target: SyncTarget, ids: PromptIds, call: TextEntry[], missing: Set<string>): Promise<number> {
  const texts = new Map(call.flatMap(({ text }) => (text && missing.has(text.hash) ? [[text.hash, text.text]] : [])))
  for await (const some of inCalls(texts, ([, text]) => sizeOf(text), maxBatchTexts)) {
    const sent = new Map(some)
    await target.recordBatch({
      entries: call.filter(({ text }) => text && sent.has(text.hash)).flatMap((one) => describeEntry(ids, one)),
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
