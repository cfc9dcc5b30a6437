import type { EntryOutcome } from '../history/reconcile.ts'
import type { PromptEntry } from '../history/record.ts'
import { maxBatchEntries, maxCoveredCommits } from '../history/schema_batch.ts'
import { recordBatch } from './calls.ts'
import type { Plan, SyncedPrompt } from './plan.ts'
import { readTexts } from './read.ts'
import type { SyncOptions } from './sync_options.ts'

type EntryToSync = PromptEntry<SyncedPrompt> & { text?: string }

/** Half of the largest body that the service accepts. */
const maxBytesPerCall = 500_000

/** Records the entries of a plan, in as few calls as their sizes allow. */
export async function syncEntries(options: SyncOptions, { entries, pathOf }: Plan) {
  const { git, isDryRun, onProgress, onChange } = options
  const counts = { added: 0, changed: 0, known: 0, texts: 0, unreadable: 0 }
  const noticed = new Set<SyncedPrompt>()
  let done = 0
  for (const call of inCalls(entries)) {
    const { outcomes, withoutText } = await recordCall(options, call)
    for (const [index, { prompt, entry }] of call.entries()) {
      const outcome = outcomes[index] as EntryOutcome
      const change = outcome === 'covered' ? 'known' : outcome
      counts[change] += 1
      if (change !== 'known') onChange({ change, prompt: prompt.id, path: prompt.path, ...entry })
    }
    const files = withoutText.map((one) => ({ commitSha: one.entry.commit_sha, path: pathOf(one) }))
    const readable: EntryToSync[] = []
    for (const [index, file] of (await readTexts(git, files)).entries()) {
      const one = withoutText[index] as EntryToSync
      if ('text' in file) readable.push({ ...one, text: file.text })
      // An entry that removes the file has no text.
      if ('text' in file || file.problem === null) continue
      counts.unreadable += 1
      const { prompt, entry } = one
      // Said once for each prompt, and not again by every later sync.
      if (noticed.has(prompt) || !(isDryRun || outcomes[call.indexOf(one)] === 'added')) continue
      noticed.add(prompt)
      const problem = `${file.problem} at ${entry.commit_sha.slice(0, 8)}; its text is left out`
      onChange({ change: 'no_text', prompt: prompt.id, path: prompt.path, problem })
    }
    // A text is sent only with an entry that has none yet.
    for (const some of isDryRun ? [] : inCalls(readable)) {
      await recordCall(options, some)
      counts.texts += some.length
    }
    done += call.length
    onProgress(done, 'entries', done / entries.length)
  }
  return counts
}

/** Records one call. All entries of a prompt that a dry run did not create would be added. */
async function recordCall(options: SyncOptions, call: EntryToSync[]) {
  const { isDryRun, withTexts = false } = options
  const known = call.filter(({ prompt }) => prompt.id !== null)
  const entries = known.map(({ prompt, entry, covers: all, text }) => {
    const covers = all.slice(-maxCoveredCommits)
    return { prompt_id: prompt.id as string, ...entry, covers, ...(text !== undefined && { text }) }
  })
  const batch = { entries, with_texts: withTexts, dry_run: isDryRun }
  const { outcomes, without_text = [] } = known.length > 0 ? await recordBatch(options.call, batch) : { outcomes: [] }
  return {
    outcomes: call.map(({ prompt }) => (prompt.id === null ? 'added' : (outcomes.shift() as EntryOutcome))),
    withoutText: without_text.map((index) => known[index] as EntryToSync),
  }
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
