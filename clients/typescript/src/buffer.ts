import type { BatchResult } from './api.ts'
import { errorOf, isTemporary, PromptSignalsError, sleep, waitMs } from './request.ts'
import { itemOf, type NewSignal, randomKey, type Signals } from './signals.ts'

export interface BufferOptions {
  /** Where signals go, such as `createClient(…).signals`. */
  signals: Pick<Signals, 'recordMany' | 'withdraw'>
  /** A batch is sent when it has this many signals, at most 1,000, or when the oldest is `intervalMs` old. */
  batchSize?: number
  intervalMs?: number
  /** How many signals may wait. Another one is rejected. */
  capacity?: number
  /** Told of every signal that was refused, for callers that do not wait for `record`. By default a warning on the console. */
  onError?: (error: Error, signal: NewSignal & { prompt: string }) => void
}

export interface SignalBuffer {
  /** Resolves once the signal is recorded; rejects if it has an unknown field, the buffer is full or closed, or the service refused it. */
  record(prompt: string, value: NewSignal['value'], options?: Omit<NewSignal, 'value'>): Promise<BatchResult>
  /**
   * As `signals.withdraw`, once everything that waits now is sent: a signal with this subject may be among it. A later one
   * waits until the withdrawal is answered.
   */
  withdraw(prompt: string, subject: string): Promise<boolean>
  /** Sends everything that waits now. Resolves when each of these signals is recorded or refused. */
  flush(): Promise<void>
  /** Takes no more signals, and flushes. When `signal` aborts, the rest is rejected. */
  close(signal?: AbortSignal): Promise<void>
}

interface Waiting {
  prompt: string
  signal: NewSignal
  bytes: number
  /** A withdrawal of this subject that must be answered first. */
  after: Promise<boolean> | undefined
  settle(result: BatchResult | Error): void
  settled: Promise<unknown>
}

/** The service takes 4 MiB. */
const batchBytes = 3_500_000

/**
 * Collects signals and records them in batches, in their order, one batch after the other. A batch that fails is sent again
 * with the same idempotency keys until the service answers.
 */
export function createSignalBuffer(options: BufferOptions): SignalBuffer {
  const { signals, batchSize = 1_000, intervalMs = 1_000, capacity = 10_000, onError = warn } = options
  let waiting: Waiting[] = []
  let isClosed = false
  let isSending = false
  let timer: ReturnType<typeof setTimeout> | undefined
  /** Those that are not answered yet, by prompt and subject. */
  const withdrawals = new Map<string, Promise<boolean>>()
  const stop = new AbortController()

  async function sendAll(): Promise<void> {
    clearTimeout(timer)
    timer = undefined
    if (isSending) return
    isSending = true
    for (;;) {
      const batch = nextBatch(waiting, batchSize)
      if (batch.size === 0) break
      const results = await sendUntilAnswered([...batch])
      waiting = waiting.filter((one) => !batch.has(one))
      for (const one of batch) one.settle(results.shift() as BatchResult | Error)
    }
    isSending = false
  }

  async function sendUntilAnswered(batch: Waiting[]): Promise<(BatchResult | Error)[]> {
    const { prompt } = batch[0] as Waiting
    for (let failures = 0; ; failures += 1) {
      try {
        const given = batch.map(({ signal }) => signal)
        const results = await signals.recordMany(prompt, given, { signal: stop.signal })
        return results.map((result) => (result.error ? errorOf(result.status, result.error) : result))
      } catch (error) {
        if (!(error instanceof PromptSignalsError && isTemporary(error))) return batch.map(() => toError(error))
        await sleep(waitMs(failures, error.retryAfterMs), stop.signal).catch(() => {})
      }
    }
  }

  async function flush(): Promise<void> {
    const settled = waiting.map((one) => one.settled)
    sendAll()
    await Promise.all(settled)
  }

  return {
    record(prompt, value, given = {}) {
      const signal = { ...given, idempotencyKey: given.idempotencyKey ?? randomKey(), value }
      let settle: Waiting['settle'] = () => {}
      const recorded = new Promise<BatchResult>((resolve, reject) => {
        settle = (result) => (result instanceof Error ? reject(result) : resolve(result))
      })
      // Nobody may wait for `recorded`: without a handler, its rejection would end the process.
      const settled = recorded.catch((error) => onError(error, { ...signal, prompt }))
      try {
        if (isClosed) throw new Error('The buffer is closed.')
        if (waiting.length >= capacity) throw new Error(`The buffer is full: ${capacity} signals wait.`)
        itemOf(signal)
        // Throws for metadata that is not JSON. The signal is sent as it is now: the caller may change the object for the next.
        const text = JSON.stringify(signal)
        const bytes = new TextEncoder().encode(text).length
        const after = withdrawals.get(keyOf(prompt, signal.subject))
        waiting.push({ prompt, signal: JSON.parse(text, keepNumber), bytes, after, settle, settled })
        if (waiting.length >= batchSize) sendAll()
        else timer ??= setTimeout(sendAll, intervalMs)
      } catch (error) {
        settle(toError(error))
      }
      return recorded
    },
    async withdraw(prompt, subject) {
      const key = keyOf(prompt, subject)
      const before = Promise.allSettled([withdrawals.get(key), flush()])
      const withdrawal = before.then(() => signals.withdraw(prompt, subject, { signal: stop.signal }))
      withdrawals.set(key, withdrawal)
      try {
        return await withdrawal
      } finally {
        if (withdrawals.get(key) === withdrawal) withdrawals.delete(key)
        for (const one of waiting) if (one.after === withdrawal) one.after = undefined
        sendAll()
      }
    },
    flush,
    async close(signal) {
      isClosed = true
      signal?.addEventListener('abort', () => stop.abort(signal.reason), { once: true })
      if (signal?.aborted) stop.abort(signal.reason)
      await flush()
      signal?.throwIfAborted()
    },
  }
}

const { rawJSON } = JSON as unknown as { rawJSON(text: string): object }

/** A number that was given with `JSON.rawJSON`, because JavaScript would change it, stays as it is. */
const keepNumber = (_: string, value: unknown, context?: { source?: string }): unknown =>
  context?.source && typeof value === 'number' && String(value) !== context.source ? rawJSON(context.source) : value

const keyOf = (prompt: string, subject: string | undefined): string => JSON.stringify([prompt, subject])

const toError = (error: unknown): Error => (error instanceof Error ? error : new Error(String(error)))

/** Without the signal, which may hold what users wrote. */
const warn = (error: Error): void => console.warn(`A signal was not recorded: ${error.message}`)

/** The oldest signals of one prompt that wait for no withdrawal, as many as one request may bring. */
function nextBatch(waiting: Waiting[], batchSize: number): Set<Waiting> {
  const batch = new Set<Waiting>()
  const first = waiting.find(({ after }) => !after)
  let bytes = 0
  for (const one of waiting) {
    if (one.after || one.prompt !== first?.prompt) continue
    bytes += one.bytes
    if (batch.size === batchSize || (bytes > batchBytes && one !== first)) break
    batch.add(one)
  }
  return batch
}
