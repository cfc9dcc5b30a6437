import { useEffect, useReducer, useRef } from 'preact/hooks'
import { type Failure, RequestFailed } from './failure.ts'

/** What a page knows of an answer that it has asked for. The last one stays while a newer one is on its way. */
export type Query<Data> = { data: Data | undefined; failure: Failure | undefined; isSlow: boolean; reload(): void }

type Entry = {
  data: unknown
  failure: Failure | undefined
  isSlow: boolean
  /** When the last answer was asked for; it is asked for again only when it has become stale. */
  askedAt: number
  underWay: Promise<void> | undefined
  watchers: Set<() => void>
}

const staleMs = 15_000
/** What takes less is waited for without a word. */
const slowMs = 200

const entries = new Map<string, Entry>()
let onSignedOut = () => {}

/** Called when the key is refused. */
export function whenSignedOut(callback: () => void): void {
  onSignedOut = callback
}

/** Forgets every answer, when the key is another one. */
export const forgetAnswers = (): void => entries.clear()

/** What was changed is asked for again: every answer whose name begins so. */
export function refresh(...names: string[]): void {
  for (const [name, entry] of entries) {
    if (!names.some((one) => name.startsWith(one))) continue
    entry.askedAt = Number.NEGATIVE_INFINITY
    for (const watch of entry.watchers) watch()
  }
}

/** Asks under a name: those who ask at the same time, or soon after, share one request. Without `ask` nothing is asked. */
export function useQuery<Data>(name: string, ask: (() => Promise<Data>) | undefined): Query<Data> {
  const [, redraw] = useReducer((count: number) => count + 1, 0)
  const entry = entryOf(name)
  useEffect(() => {
    const entry = entryOf(name)
    const watch = () => {
      redraw(undefined)
      load(name, entry, ask)
    }
    entry.watchers.add(watch)
    watch()
    return () => {
      entry.watchers.delete(watch)
    }
  }, [name])
  const reload = () => {
    entry.askedAt = Number.NEGATIVE_INFINITY
    load(name, entry, ask)
  }
  return { data: entry.data as Data | undefined, failure: entry.failure, isSlow: entry.isSlow, reload }
}

/** The same, and the last answer stays while that of another name is on its way, so that the page does not blink. */
export function useSteadyQuery<Data>(name: string, ask: () => Promise<Data>): Query<Data> {
  const last = useRef<Data>(undefined)
  const query = useQuery(name, ask)
  if (query.data !== undefined) last.current = query.data
  return { ...query, data: query.data ?? last.current }
}

/** Asks ahead, for a page that will be opened in a moment. */
export const prefetch = <Data>(name: string, ask: () => Promise<Data>): Promise<void> | undefined =>
  load(name, entryOf(name), ask)

function entryOf(name: string): Entry {
  const known = entries.get(name)
  if (known) return known
  const entry: Entry = {
    data: undefined,
    failure: undefined,
    isSlow: false,
    askedAt: Number.NEGATIVE_INFINITY,
    underWay: undefined,
    watchers: new Set(),
  }
  entries.set(name, entry)
  return entry
}

function load(name: string, entry: Entry, ask: (() => Promise<unknown>) | undefined): Promise<void> | undefined {
  if (!ask || entry.underWay || performance.now() - entry.askedAt < staleMs) return entry.underWay
  entry.askedAt = performance.now()
  const slow = setTimeout(() => show(entry, { isSlow: true }), slowMs)
  entry.underWay = ask()
    .then(
      (data) => ({ data, failure: undefined }),
      (error) => ({ failure: readFailure(error) }),
    )
    .then((outcome) => {
      clearTimeout(slow)
      entry.underWay = undefined
      entry.askedAt = performance.now()
      // Of another key, or forgotten meanwhile.
      if (entries.get(name) !== entry) return
      show(entry, { isSlow: false, ...outcome })
      if (outcome.failure?.kind === 'signed out') onSignedOut()
    })
  return entry.underWay
}

function show(entry: Entry, change: Partial<Entry>): void {
  Object.assign(entry, change)
  for (const watch of entry.watchers) watch()
}

export function readFailure(error: unknown): Failure {
  if (error instanceof RequestFailed) return error.failure
  throw error
}
