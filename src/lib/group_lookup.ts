import { nextTurn } from './turns.ts'

/**
 * Looks keys up together: one look-up runs at a time, and all keys that are asked for while it runs go into the
 * next. So every answer was read after its caller asked, and many callers cost one round trip.
 */
export function createGroupLookup<Value, Key = string>(
  /** Finds the values, by the id of each key. */
  lookUp: (keys: Key[]) => Promise<Map<string, Value>>,
  idOf: (key: Key) => string = String,
): (key: Key) => Promise<Value | undefined> {
  let asked = new Map<string, PromiseWithResolvers<Value | undefined> & { key: Key }>()
  let isRunning = false

  async function run(): Promise<void> {
    while (asked.size > 0) {
      const group = asked
      asked = new Map()
      try {
        const found = await lookUp([...group.values()].map(({ key }) => key))
        for (const [id, { resolve }] of group) resolve(found.get(id))
      } catch (error) {
        for (const { reject } of group.values()) reject(error)
      }
    }
    isRunning = false
  }

  return (key) => {
    const id = idOf(key)
    const pending = asked.get(id) ?? { ...Promise.withResolvers<Value | undefined>(), key }
    asked.set(id, pending)
    if (!isRunning) {
      isRunning = true
      nextTurn().then(run)
    }
    return pending.promise
  }
}
