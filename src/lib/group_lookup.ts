import { nextTurn } from './turns.ts'

/**
 * Looks keys up together: one look-up runs at a time, and all keys that are asked for while it runs go into the
 * next. So every answer was read after its caller asked, and many callers cost one round trip.
 */
export function createGroupLookup<Value>(
  lookUp: (keys: string[]) => Promise<Map<string, Value>>,
): (key: string) => Promise<Value | undefined> {
  let asked = new Map<string, PromiseWithResolvers<Value | undefined>>()
  let isRunning = false

  async function run(): Promise<void> {
    isRunning = true
    while (asked.size > 0) {
      const group = asked
      asked = new Map()
      try {
        const found = await lookUp([...group.keys()])
        for (const [key, { resolve }] of group) resolve(found.get(key))
      } catch (error) {
        for (const { reject } of group.values()) reject(error)
      }
    }
    isRunning = false
  }

  return (key) => {
    const waiting = asked.get(key) ?? Promise.withResolvers<Value | undefined>()
    asked.set(key, waiting)
    if (!isRunning) {
      isRunning = true
      nextTurn().then(run)
    }
    return waiting.promise
  }
}
