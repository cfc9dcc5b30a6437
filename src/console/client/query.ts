import { useEffect, useReducer, useRef, useState } from 'preact/hooks'
import { answerOf, type Question } from './api.ts'
import { type Failure, readFailure } from './failure.ts'

/** What a page knows of an answer that it has asked for. The last one stays while a newer one is on its way. */
export type Query<Data> = { data: Data | undefined; failure: Failure | undefined; isSlow: boolean; reload(): void }

const never = Number.NEGATIVE_INFINITY

/** An answer that is kept, and who is to know when it changes. */
class Entry {
  data: unknown
  failure: Failure | undefined
  isSlow = false
  isUnderWay = false
  /** When the last answer came; it is asked for again only when it has become stale. */
  answeredAt = never
  watchers = new Set<() => void>()
}

const staleMs = 15_000
/** What takes less is waited for without a word. */
const slowMs = 200

const entries = new Map<string, Entry>()
let onSignedOut = () => {}

/** Called when the key is rejected. */
export function whenSignedOut(callback: () => void): void {
  onSignedOut = callback
}

/** Forgets every answer, when the key is another one. */
export const forgetAnswers = (): void => entries.clear()

/** Asks again for what a change may have changed, and for the audit log. */
export const refreshAfterChange = (...names: string[]): void => refresh('/api/v1/audit', ...names)

/** Sends a change. What it may have changed is asked for again. */
export async function change<Data>(asked: Parameters<typeof answerOf<Data>>[0], ...names: string[]): Promise<Data> {
  const data = await answerOf(asked)
  refreshAfterChange(...names)
  return data
}

/** What differs from before, if anything: the rest may have been changed by somebody else meanwhile. Lists have no order. */
export function onlyChanged<Given extends object>(given: Given, before: { [Name in keyof Given]: unknown }) {
  const plain = (value: unknown) => JSON.stringify(Array.isArray(value) ? value.toSorted() : value)
  const changed = Object.entries(given).filter(([name, value]) => plain(value) !== plain(before[name as keyof Given]))
  return changed.length === 0 ? undefined : (Object.fromEntries(changed) as Partial<Given>)
}

/** Asks again for every answer whose name begins so. */
export const refresh = (...names: string[]): void => askAgain((_, name) => names.some((one) => name.startsWith(one)))

/** Asks again for all that failed: the service was away for the whole page, its navigation included. */
export const retryFailed = (): void => askAgain(({ failure }) => failure !== undefined)

function askAgain(isMeant: (entry: Entry, name: string) => boolean): void {
  for (const [name, entry] of entries) {
    if (!isMeant(entry, name)) continue
    entry.answeredAt = never
    for (const watch of entry.watchers) watch()
  }
}

/**
 * Those who ask the same at the same time, or soon after, share one request. Without a question nothing is asked. With
 * `keepPrevious` the last answer stays while that of another question is on its way, so that the page does not blink.
 */
export function useQuery<Data>(question: Question<Data> | undefined, { keepPrevious = false } = {}): Query<Data> {
  const [, redraw] = useReducer((count: number) => count + 1, 0)
  const previous = useRef<Data>(undefined)
  const name = question?.name ?? ''
  useEffect(() => {
    const { watchers } = entryOf(name)
    const watch = () => {
      redraw(undefined)
      prefetch(question)
    }
    watchers.add(watch)
    watch()
    return () => void watchers.delete(watch)
  }, [name])
  const { failure, isSlow, ...entry } = entryOf(name)
  const data = (entry.data ?? (keepPrevious && !failure ? previous.current : undefined)) as Data | undefined
  previous.current = data
  return { data, failure, isSlow, reload: () => refresh(name) }
}

function entryOf(name: string): Entry {
  const entry = entries.get(name) ?? new Entry()
  entries.set(name, entry)
  return entry
}

/** Asks, unless the answer is on its way or still fresh. A page does so ahead of what will be opened in a moment. */
export async function prefetch(question: Question<unknown> | undefined): Promise<void> {
  if (!question) return
  const entry = entryOf(question.name)
  if (entry.isUnderWay || performance.now() - entry.answeredAt < staleMs) return
  entry.isUnderWay = true
  entry.answeredAt = performance.now()
  const slow = setTimeout(() => show(entry, { isSlow: true }), slowMs)
  const outcome = await question.ask().then(
    (data) => ({ data, failure: undefined }),
    (error) => ({ failure: readFailure(error) }),
  )
  clearTimeout(slow)
  entry.isUnderWay = false
  // An answer may lack a change that was sent meanwhile: it is asked for again.
  if (entry.answeredAt !== never) entry.answeredAt = performance.now()
  // The answer is that of another key, or was forgotten meanwhile.
  if (entries.get(question.name) !== entry) return
  show(entry, { isSlow: false, ...outcome })
  if (outcome.failure?.kind === 'signed out') onSignedOut()
}

function show(entry: Entry, change: Partial<Entry>): void {
  Object.assign(entry, change)
  for (const watch of entry.watchers) watch()
}

/** A change that is being sent, and why it failed. */
export function useSending() {
  const [state, setState] = useState<{ isSending: boolean; failure?: Failure | undefined }>({ isSending: false })
  const send = async (work: () => Promise<unknown>) => {
    setState({ isSending: true })
    let failure: Failure | undefined
    try {
      await work()
    } catch (error) {
      failure = readFailure(error)
    } finally {
      setState({ isSending: false, failure })
    }
  }
  return { ...state, send }
}
