let deferred: (() => void)[] = []

function runDeferred(): void {
  const works = deferred
  deferred = []
  for (const work of works) work()
}

/**
 * Runs the work at the end of this turn of the event loop, together with everything else that was deferred. Requests that
 * are read in one turn then run the same code back to back, from warm processor caches.
 */
export function deferToImmediate(work: () => void): void {
  if (deferred.push(work) === 1) setImmediate(runDeferred)
}

/** Resolves in the next turn of the event loop, when the requests that have arrived by now were read. */
export const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
