/** Runs pieces of work that have the same key one after the other; refuses one more when too many wait for a key. */
export function createKeyedMutex(
  maxWaiting: number,
  refuse: () => Error,
): <T>(key: string, work: () => Promise<T>) => Promise<T> {
  /** Those who wait for a key. A key that is free has no entry. */
  const waiting = new Map<string, (() => void)[]>()
  return async (key, work) => {
    const queue = waiting.get(key) ?? []
    if (queue.length >= maxWaiting) throw refuse()
    if (waiting.has(key)) await new Promise<void>((resolve) => queue.push(resolve))
    else waiting.set(key, queue)
    try {
      return await work()
    } finally {
      const next = queue.shift()
      if (next) next()
      else waiting.delete(key)
    }
  }
}
