import type { BatchResult, RecordedSignal } from './api.ts'
import { type CallOptions, type ClientOptions, createSend, dataOf, PromptSignalsError, type Send } from './request.ts'

export { type CallOptions, type ClientOptions, PromptSignalsError } from './request.ts'

export type Value = 'positive' | 'negative'

export interface SignalOptions {
  /** A JSON object of at most 16 KiB. */
  metadata?: Record<string, unknown>
  /** The commit of the prompt that produced the output: it attributes the signal to a change. */
  commit?: string
  /**
   * What the signal is about, such as the id of an answer: 1 to 255 characters that nobody can guess. The last signal of a
   * prompt with a subject replaces the one before it.
   */
  subject?: string
  /** Signals with the same key are one signal. */
  idempotencyKey?: string
}

export interface NewSignal extends SignalOptions {
  value: Value
  /** When the feedback was given; now by default. */
  createdAt?: Date
}

export interface Signals {
  /** Records a signal once, however often the request must be sent. In a browser the request outlives the page. */
  record(
    prompt: string,
    value: Value,
    options?: SignalOptions & CallOptions,
  ): Promise<RecordedSignal & { replayed: boolean }>
  /** Records 1 to 1,000 signals with one request. There is a result for each, in their order. */
  recordMany(prompt: string, signals: NewSignal[], options?: CallOptions): Promise<BatchResult[]>
  /** Withdraws the signal with this subject. False if there is none, or if an attempt whose answer was lost withdrew it. */
  withdraw(prompt: string, subject: string, options?: CallOptions): Promise<boolean>
}

/** Only what records signals: for pages, where size matters. */
export const createSignals = (options: ClientOptions): Signals => signalsOf(createSend(options))

export const signalsOf = (send: Send): Signals => ({
  async record(prompt, value, { metadata, commit, subject, idempotencyKey = randomKey(), ...options } = {}) {
    const { signal: _, ...unknown } = options
    rejectUnknown(unknown)
    const body = { value, subject, metadata: withCommit(metadata, commit) }
    const request = { ...options, body, idempotencyKey, keepalive: true }
    return send('POST', pathOf(prompt), request, async (response) => ({
      ...(await dataOf<RecordedSignal>(response)),
      replayed: response.headers.has('idempotent-replayed'),
    }))
  },

  async recordMany(prompt, signals, options = {}) {
    const body = { signals: signals.map(itemOf) }
    return send('POST', `${pathOf(prompt)}/batch`, { ...options, body }, dataOf<BatchResult[]>)
  },

  async withdraw(prompt, subject, options = {}) {
    const path = `${pathOf(prompt)}?${new URLSearchParams({ subject })}`
    try {
      return await send('DELETE', path, { ...options, keepalive: true }, () => true)
    } catch (error) {
      if (error instanceof PromptSignalsError && error.code === 'not_found') return false
      throw error
    }
  },
})

/** A signal as a batch has it. */
export function itemOf({ value, metadata, commit, subject, idempotencyKey, createdAt, ...unknown }: NewSignal) {
  rejectUnknown(unknown)
  return {
    value,
    subject,
    metadata: withCommit(metadata, commit),
    idempotency_key: idempotencyKey ?? randomKey(),
    created_at: createdAt,
  }
}

/** The service ignores them: a time under the name that REST has for it would become the time of now. */
function rejectUnknown(fields: object): void {
  const [name] = Object.keys(fields)
  if (name !== undefined) throw new TypeError(`A signal has no ${name}. Names are written like createdAt.`)
}

export const pathOf = (prompt: string, list = 'signals'): string => `/prompts/${encodeURIComponent(prompt)}/${list}`

const withCommit = (metadata?: Record<string, unknown>, commit?: string) =>
  commit === undefined ? metadata : { ...metadata, commit_sha: commit }

/** `crypto.randomUUID` is missing on pages without TLS. */
export const randomKey = (): string =>
  crypto.getRandomValues(new Uint8Array(16)).reduce((text, byte) => text + byte.toString(16).padStart(2, '0'), '')
