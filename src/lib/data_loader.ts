import { nextTurn } from './turns.ts'

/** A slower look-up, perhaps on a dead connection, no longer blocks the next one. */
const slowMs = 250
/** How many slow look-ups may be overtaken. With more, the database itself is slow. */
const maxSlow = 3

/** Runs one look-up at a time. Keys requested meanwhile share the next, so a value is never older than its request. */
export function createDataLoader<Value, Key = string>(
  /** Finds the values, by the id of each key. */
  lookUp: (keys: Key[]) => Promise<Map<string, Value>>,
  idOf: (key: Key) => string = String,
  maxBatch = Number.POSITIVE_INFINITY,
): (key: Key) => Promise<Value | undefined> {
  type Batch = Map<string, PromiseWithResolvers<Value | undefined> & { key: Key }>
  let queued: Batch = new Map()
  let isRunning = false
  let slow = 0

  async function run(batch: Batch): Promise<void> {
    try {
      const found = await lookUp([...batch.values()].map(({ key }) => key))
      for (const [id, { resolve }] of batch) resolve(found.get(id))
    } catch (error) {
      for (const { reject } of batch.values()) reject(error)
    }
  }

  function takeBatch(): Batch {
    const waiting = queued
    queued = new Map()
    if (waiting.size <= maxBatch) return waiting
    queued = new Map([...waiting].slice(maxBatch))
    return new Map([...waiting].slice(0, maxBatch))
  }

  async function runAll(): Promise<void> {
    while (queued.size > 0) {
      const batch = takeBatch()
      let isPassed = false
      const timer = setTimeout(() => {
        if (slow === maxSlow) return
        isPassed = true
        slow += 1
        runAll()
      }, slowMs)
      await run(batch)
      clearTimeout(timer)
      if (isPassed) {
        slow -= 1
        return
      }
    }
    isRunning = false
  }

  return (key) => {
    const id = idOf(key)
    const pending = queued.get(id) ?? { ...Promise.withResolvers<Value | undefined>(), key }
    queued.set(id, pending)
    if (!isRunning) {
      isRunning = true
      nextTurn().then(runAll)
    }
    return pending.promise
  }
}
