type Turn<T> = { running: Promise<T>; next?: Promise<T> }

/**
 * Lets callers share look-ups of one key: one runs at a time, and whoever comes while it runs shares the
 * next, so that every answer was read after its caller asked.
 */
export function createSharedLookup<T>(lookUp: (key: string) => Promise<T>): (key: string) => Promise<T> {
  const turns = new Map<string, Turn<T>>()

  function start(key: string): Promise<T> {
    const turn: Turn<T> = { running: lookUp(key) }
    turns.set(key, turn)
    const finish = () => {
      if (turns.get(key) === turn && !turn.next) turns.delete(key)
    }
    turn.running.then(finish, finish)
    return turn.running
  }

  return (key) => {
    const turn = turns.get(key)
    if (!turn) return start(key)
    turn.next ??= turn.running.then(
      () => start(key),
      () => start(key),
    )
    return turn.next
  }
}
