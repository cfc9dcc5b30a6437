/** Resolves in the next turn of the event loop, when the requests that have arrived by now were read. */
export const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
