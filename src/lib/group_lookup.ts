import { nextTurn } from './turns.ts'

/**
 * Looks keys up in batches: one look-up runs at a time, and all keys that are requested while it runs go into the next.
 * Every value is thus read after it was requested, and many callers cost one round trip.
 */
export function createGroupLookup<Value, Key = string>(
  /** Finds the values, by the id of each key. */
  lookUp: (keys: Key[]) => Promise<Map<string, Value>>,
  idOf: (key: Key) => string = String,
): (key: Key) => Promise<Value | undefined> {
  let queued = new Map<string, PromiseWithResolvers<Value | undefined> & { key: Key }>()
  let isRunning = false

  async function run(): Promise<void> {
    while (queued.size > 0) {
      const batch = queued
      queued = new Map()
      try {
        const found = await lookUp([...batch.values()].map(({ key }) => key))
        for (const [id, { resolve }] of batch) resolve(found.get(id))
      } catch (error) {
        for (const { reject } of batch.values()) reject(error)
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
      nextTurn().then(run)
    }
    return pending.promise
  }
}
