let row: (() => void)[] = []

function runRow(): void {
  const works = row
  row = []
  for (const work of works) work()
}

/**
 * Runs the work at the end of this turn of the event loop, in a row with all that was put off to then. Of the requests
 * that are read in one turn, one after the other by the system, the first thus brings the code into the processor's
 * caches for all: under load this takes a tenth off the time for each.
 */
export function atTurnsEnd(work: () => void): void {
  if (row.push(work) === 1) setImmediate(runRow)
}

/**
 * Resolves when what has arrived by now has been read. Each request is read in a moment of its own, so work for
 * several of them is gathered over a whole turn of the event loop.
 */
export const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** Lets pieces of work that go by the same name run one after the other; past so many in line, one more is refused. */
export function createTurns(
  maxWaiting: number,
  refuse: () => Error,
): <T>(name: string, work: () => Promise<T>) => Promise<T> {
  /** Those who wait, while somebody has the turn. */
  const lines = new Map<string, (() => void)[]>()
  return async (name, work) => {
    const line = lines.get(name) ?? []
    if (line.length >= maxWaiting) throw refuse()
    if (lines.has(name)) await new Promise<void>((resolve) => line.push(resolve))
    else lines.set(name, line)
    try {
      return await work()
    } finally {
      const next = line.shift()
      if (next) next()
      else lines.delete(name)
    }
  }
}
