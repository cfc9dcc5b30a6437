/** Lets so many pieces of work run at once. Others wait in line, and when that is full, one more is refused. */
export function createPermits(
  most: number,
  maxWaiting: number,
  refuse: () => Error,
): <T>(work: () => Promise<T>) => Promise<T> {
  const waiting: (() => void)[] = []
  let free = most

  async function take(): Promise<void> {
    if (free > 0) {
      free -= 1
      return
    }
    if (waiting.length >= maxWaiting) throw refuse()
    await new Promise<void>((resolve) => waiting.push(resolve))
  }

  return async (work) => {
    await take()
    try {
      return await work()
    } finally {
      const next = waiting.shift()
      // Handed on rather than freed: nobody who comes now overtakes those in line.
      if (next) next()
      else free += 1
    }
  }
}
