let deferred: (() => void)[] = []

function runDeferred(): void {
  const works = deferred
  deferred = []
  for (const work of works) work()
}

/** Runs all deferred work back to back at the end of this turn of the event loop, from warm processor caches. */
export function deferToImmediate(work: () => void): void {
  if (deferred.push(work) === 1) setImmediate(runDeferred)
}

/** Resolves in the next turn of the event loop, when the requests that have arrived by now were read. */
export const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
