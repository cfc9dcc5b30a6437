export type GroupCommit<Item, Outcome> = {
  /** The item's own outcome, once the write that carried it has committed. */
  add(item: Item): Promise<Outcome>
  /** Waits until everything added has been written. */
  drain(): Promise<void>
}

type Options<Item, Outcome> = {
  /** Writes all items in one transaction and answers them in order. */
  write(items: Item[]): Promise<Outcome[]>
  /** Whether the failure was one item's own fault, with nothing written: then each is tried alone. */
  isItemFault(error: unknown): boolean
  /** What a caller gets when the line is full. */
  refuse(): Error
  maxItems: number
  maxWaiting: number
}

type Waiting<Item, Outcome> = {
  item: Item
  resolve(outcome: Outcome): void
  reject(error: unknown): void
}

/** Items that arrive while a write is under way wait together and go down as the next one. */
export function createGroupCommit<Item, Outcome>(options: Options<Item, Outcome>): GroupCommit<Item, Outcome> {
  const line: Waiting<Item, Outcome>[] = []
  let writing: Promise<void> | undefined

  async function writeTogether(group: Waiting<Item, Outcome>[]): Promise<void> {
    try {
      const outcomes = await options.write(group.map(({ item }) => item))
      group.forEach(({ resolve }, position) => {
        resolve(outcomes[position] as Outcome)
      })
    } catch (error) {
      if (group.length > 1 && options.isItemFault(error)) {
        for (const one of group) await writeTogether([one])
      } else {
        for (const { reject } of group) reject(error)
      }
    }
  }

  async function writeAll(): Promise<void> {
    while (line.length > 0) await writeTogether(line.splice(0, options.maxItems))
    writing = undefined
  }

  return {
    add(item) {
      if (line.length >= options.maxWaiting) return Promise.reject(options.refuse())
      return new Promise((resolve, reject) => {
        line.push({ item, resolve, reject })
        // Started a turn later, so that requests read together are also written together.
        writing ??= Promise.resolve().then(writeAll)
      })
    },
    async drain() {
      await writing
    },
  }
}
