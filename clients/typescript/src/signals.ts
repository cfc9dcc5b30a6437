import type { BatchResult, RecordedSignal } from './api.ts'
import { type CallOptions, type ClientOptions, createSend, dataOf, type Send } from './request.ts'

export { type CallOptions, type ClientOptions, PromptSignalsError } from './request.ts'

export type Value = 'positive' | 'negative'

export interface SignalOptions {
  /** A JSON object of at most 16 KiB. */
  metadata?: Record<string, unknown>
  /** The commit of the prompt that produced the output: it attributes the signal to a change. */
  commit?: string
  /** Signals with the same key are one signal. */
  idempotencyKey?: string
}

export interface NewSignal extends SignalOptions {
  value: Value
  /** When the feedback was given; now by default. */
  createdAt?: Date
}

export interface Signals {
  /**
   * Records a signal once, however often the request must be sent. In a browser a second click on the same value is the
   * same signal for the life of the tab; the other value is a new one. The request outlives the page.
   */
  record(
    prompt: string,
    value: Value,
    options?: SignalOptions & CallOptions,
  ): Promise<RecordedSignal & { replayed: boolean }>
  /** Records 1 to 1,000 signals with one request. There is a result for each, in their order. */
  recordMany(prompt: string, signals: NewSignal[], options?: CallOptions): Promise<BatchResult[]>
}

/** Only what records signals: for pages, where size matters. */
export const createSignals = (options: ClientOptions): Signals => signalsOf(createSend(options))

export const signalsOf = (send: Send): Signals => ({
  record(prompt, value, { metadata, commit, idempotencyKey, ...options } = {}) {
    const body = { value, metadata: withCommit(metadata, commit) }
    const request = { ...options, body, idempotencyKey: idempotencyKey ?? keyOfVote(prompt, body), keepalive: true }
    return send('POST', pathOf(prompt), request, async (response) => ({
      ...(await dataOf<RecordedSignal>(response)),
      replayed: response.headers.has('idempotent-replayed'),
    }))
  },

  recordMany(prompt, signals, options = {}) {
    const body = {
      signals: signals.map(({ value, metadata, commit, idempotencyKey, createdAt }) => ({
        value,
        metadata: withCommit(metadata, commit),
        idempotency_key: idempotencyKey ?? randomKey(),
        created_at: createdAt,
      })),
    }
    return send('POST', `${pathOf(prompt)}/batch`, { ...options, body }, dataOf<BatchResult[]>)
  },
})

export const pathOf = (prompt: string, list = 'signals'): string => `/prompts/${encodeURIComponent(prompt)}/${list}`

const withCommit = (metadata?: Record<string, unknown>, commit?: string) =>
  commit === undefined ? metadata : { ...metadata, commit_sha: commit }

/** `crypto.randomUUID` is missing on pages without TLS. */
export const randomKey = (): string =>
  crypto.getRandomValues(new Uint8Array(16)).reduce((text, byte) => text + byte.toString(16).padStart(2, '0'), '')

type PageStorage = { getItem(name: string): string | null; setItem(name: string, value: string): void }

/** The key of the last vote if it is repeated, else a new one. Only a page keeps votes: each tab is one session. */
function keyOfVote(prompt: string, { value, metadata }: { value: Value; metadata: object | undefined }): string {
  const key = randomKey()
  if (!('document' in globalThis)) return key
  try {
    const name = `prompt-signals ${prompt} ${JSON.stringify(metadata)}`
    const { sessionStorage } = globalThis as unknown as { sessionStorage: PageStorage }
    const [lastValue, lastKey] = sessionStorage.getItem(name)?.split(' ') ?? []
    if (lastValue === value && lastKey) return lastKey
    sessionStorage.setItem(name, `${value} ${key}`)
  } catch {
    // Storage is blocked or full: every click is a new signal.
  }
  return key
}
