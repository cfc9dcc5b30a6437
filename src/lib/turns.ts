/**
 * Resolves when what has arrived by now has been read. Each request is read in a moment of its own, so work for
 * several of them is gathered over a whole turn of the event loop.
 */
export const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** Lets pieces of work that go by the same name run one after the other. */
export function createTurns(): <T>(name: string, work: () => Promise<T>) => Promise<T> {
  const underWay = new Map<string, Promise<unknown>>()
  return async (name, work) => {
    // Woken together, the first takes the turn and the others find it taken.
    while (underWay.has(name)) await underWay.get(name)
    const running = work()
    const ended = running.then(
      () => underWay.delete(name),
      () => underWay.delete(name),
    )
    underWay.set(name, ended)
    return running
  }
}
