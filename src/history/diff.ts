import { createTwoFilesPatch, FILE_HEADERS_ONLY, formatPatch } from 'diff'
import type { Sql } from '../db/client.ts'
import { notFound } from '../errors.ts'
import { createSemaphore } from '../lib/concurrency.ts'
import { invalidQuery } from '../lib/params.ts'
import { yieldFor } from '../lib/periodic.ts'
import type { OwnedPrompt } from '../prompts/find.ts'
import { showTitledEntry } from './schema.ts'
import { selectEntryWithText } from './store.ts'

/** The most removed and added lines: a longer search for the shortest diff would keep other requests waiting. */
const maxEditLength = 200

/** Compares the text of an entry with that of another, or of the change before it. `name` is shown in the diff. */
export async function readDiff(sql: Sql, prompt: OwnedPrompt, name: string, id: number, base: number | null) {
  const entry = await selectEntryWithText(sql, prompt, id)
  if (!entry) throw notFound()
  const baseId = base ?? entry.before_id
  const before = baseId === null ? undefined : await selectEntryWithText(sql, prompt, baseId)
  if (base !== null && !before) {
    throw invalidQuery({ path: 'base', message: 'must be the id of a history entry of this prompt' })
  }
  // Before the first change there was no text.
  const from = before ? before.text : ''
  return {
    entry: showTitledEntry(entry),
    base: before ? showTitledEntry(before) : null,
    before: before?.text ?? null,
    after: entry.text,
    diff: from === null || entry.text === null ? null : await diffInTurn(name, from, entry.text),
  }
}

const limitDiffs = createSemaphore({ permits: 1 })

/** A diff blocks the event loop. They wait for each other, and each rests for as long as it took: other requests get half. */
export async function diffInTurn(name: string, before: string, after: string): Promise<string> {
  const release = await limitDiffs.acquire({})
  const startedAt = performance.now()
  try {
    return unifiedDiff(name, before, after)
  } finally {
    yieldFor(startedAt).then(release)
  }
}

/** Equal texts have an empty diff. If the search takes too long, the diff replaces the whole text. */
export function unifiedDiff(name: string, before: string, after: string): string {
  if (before === after) return ''
  const options = { maxEditLength, headerOptions: FILE_HEADERS_ONLY }
  const found = createTwoFilesPatch(name, name, before, after, undefined, undefined, options)
  return found ?? replaceAll(name, before, after)
}

function replaceAll(name: string, before: string, after: string): string {
  const linesOf = (sign: string, text: string) => {
    const lines = text.split('\n')
    const isCut = lines.pop() !== ''
    const all = isCut ? text.split('\n') : lines
    return {
      count: all.length,
      lines: [...all.map((line) => sign + line), ...(isCut ? ['\\ No newline at end of file'] : [])],
    }
  }
  const [removed, added] = [linesOf('-', before), linesOf('+', after)]
  const hunk = {
    ...{ oldStart: 1, oldLines: removed.count, newStart: 1, newLines: added.count },
    lines: [...removed.lines, ...added.lines],
  }
  const names = { oldFileName: name, newFileName: name, oldHeader: undefined, newHeader: undefined }
  return formatPatch({ ...names, hunks: [hunk] }, FILE_HEADERS_ONLY)
}
