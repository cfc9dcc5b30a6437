/** Runs works with the same key one after the other, and rejects one more when too many wait for a key. */
export function createKeyedMutex(
  maxWaiting: number,
  rejectWith: () => Error,
): <T>(key: string, work: () => Promise<T>) => Promise<T> {
  /** The waiters of each key. A key that is free has no entry. */
  const waiting = new Map<string, (() => void)[]>()
  return async (key, work) => {
    const queue = waiting.get(key) ?? []
    if (queue.length >= maxWaiting) throw rejectWith()
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
