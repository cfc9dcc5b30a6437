import { nextTurn } from './turns.ts'

/** A look-up that takes longer than this, perhaps on a connection that is dead, no longer holds up the next. */
const slowMs = 250
/** How many slow ones others may pass: with more of them it is the database that is slow. */
const maxSlow = 3

/**
 * Looks keys up together: one look-up runs at a time, and all keys that are asked for while it runs go into the
 * next. So every answer was read after its caller asked, and many callers cost one round trip.
 */
export function createGroupLookup<Value, Key = string>(
  /** Finds the values, by the id of each key. */
  lookUp: (keys: Key[]) => Promise<Map<string, Value>>,
  idOf: (key: Key) => string = String,
): (key: Key) => Promise<Value | undefined> {
  type Asked = Map<string, PromiseWithResolvers<Value | undefined> & { key: Key }>
  let asked: Asked = new Map()
  let isRunning = false
  let slow = 0

  async function run(group: Asked): Promise<void> {
    try {
      const found = await lookUp([...group.values()].map(({ key }) => key))
      for (const [id, { resolve }] of group) resolve(found.get(id))
    } catch (error) {
      for (const { reject } of group.values()) reject(error)
    }
  }

  async function runAll(): Promise<void> {
    while (asked.size > 0) {
      const group = asked
      asked = new Map()
      let isPassed = false
      const timer = setTimeout(() => {
        if (slow === maxSlow) return
        isPassed = true
        slow += 1
        runAll()
      }, slowMs)
      await run(group)
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
    const pending = asked.get(id) ?? { ...Promise.withResolvers<Value | undefined>(), key }
    asked.set(id, pending)
    if (!isRunning) {
      isRunning = true
      nextTurn().then(runAll)
    }
    return pending.promise
  }
}
