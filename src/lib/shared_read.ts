/**
 * Runs a read once at a time for each key. Who asks meanwhile shares the next run, so that no answer is older than its
 * request.
 */
export function createSharedReads<T>() {
  const [running, waiting] = [new Map<string, Promise<T>>(), new Map<string, Promise<T>>()]

  return function share(key: string, read: () => Promise<T>): Promise<T> {
    const current = running.get(key)
    if (!current) {
      const result = read().finally(() => running.delete(key))
      running.set(key, result)
      return result
    }
    const next = async () => {
      await current.catch(() => {})
      waiting.delete(key)
      return share(key, read)
    }
    const result = waiting.get(key) ?? next()
    waiting.set(key, result)
    return result
  }
}
