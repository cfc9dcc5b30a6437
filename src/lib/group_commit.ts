import { nextTurn } from './turns.ts'

export type GroupCommit<Item, Outcome> = {
  /** The item's own outcome, once the write that carried it has committed. */
  add(item: Item): Promise<Outcome>
  /** Waits until everything added has been written. */
  drain(): Promise<void>
}

/** Why a write failed with nothing written: through one of its items, or because a group's rows are held. */
export type Fault = 'item' | 'busy'

type Options<Item, Outcome> = {
  /** Writes all items in one transaction and answers them in order. */
  write(items: Item[]): Promise<Outcome[]>
  /** Undefined for a failure that has nothing to do with what was written. */
  faultOf(error: unknown): Fault | undefined
  /** Items of one group can hold each other up, but must not hold up those of another. */
  groupOf(item: Item): unknown
  /** What a caller gets when the line is full. */
  refuse(): Error
  maxItems: number
  /** How much an item adds to the size of its write. */
  sizeOf(item: Item): number
  /** No write is larger, unless it is of one item. */
  maxSize: number
  maxWaiting: number
  /** An item that could not be written for so long is given up. */
  patienceMs: number
  /** How long a handful of callers, each just answered, may be waited for to ask again; not at all unless told. */
  gatherMs?: number
  /** Told of every write when it begins: how many items it takes down, and how long the first of them waited. */
  onWrite?: (items: number, waitedMs: number) => void
}

type Waiting<Item, Outcome> = {
  item: Item
  giveUpAt: number
  resolve(outcome: Outcome): void
  reject(error: unknown): void
}

const nothingToTell = () => {}

/** So few are better written together than by turns: most of what a write takes is not theirs. */
const handful = 20
/** After waiting in vain, that many writes begin without. */
const ungatheredWrites = 15

/** So few go down together: to write them twice would cost the database more than it saves here. */
const few = 128

/**
 * How many to write next: half of those who seem to be there, which are the ones in line and the ones just written,
 * who are about to come back. So one half is written while the other is answered and heard. Otherwise all would soon
 * wait for one write, and then it for all of them.
 */
const shareOf = (inLine: number, justWritten: number): number => Math.max(few, Math.ceil((inLine + justWritten) / 2))

/** A line of items, written one group commit after the other. */
type Lane<Item, Outcome> = {
  line: Waiting<Item, Outcome>[]
  writing: Promise<void> | undefined
  /** Until that many are in line, the next write waits. */
  gathering: { wanted: number; end(): void } | undefined
  /** So many writes from now on begin without waiting for anyone. */
  ungathered: number
}

const emptyLane = <Item, Outcome>(): Lane<Item, Outcome> => ({
  line: [],
  writing: undefined,
  gathering: undefined,
  ungathered: 0,
})

/**
 * Items that arrive while a write is under way wait together and go down as the next one. A group whose rows are
 * held by somebody else gets a lane of its own until it is through.
 */
export function createGroupCommit<Item, Outcome>(options: Options<Item, Outcome>): GroupCommit<Item, Outcome> {
  type Batch = Waiting<Item, Outcome>[]
  const common = emptyLane<Item, Outcome>()
  const own = new Map<unknown, Lane<Item, Outcome>>()
  let waiting = 0

  function enqueue(lane: Lane<Item, Outcome>, one: Waiting<Item, Outcome>): void {
    lane.line.push(one)
    if (lane.gathering && lane.line.length >= lane.gathering.wanted) lane.gathering.end()
    lane.writing ??= nextTurn().then(() => writeAll(lane))
  }

  async function writeAll(lane: Lane<Item, Outcome>): Promise<void> {
    let tellLast = nothingToTell
    let lastNumber = 0
    while (lane.line.length > 0) {
      const batch = lane.line.splice(0, countFitting(lane, shareOf(lane.line.length, lastNumber)))
      lastNumber = batch.length
      // Nobody waits for these any more: writing them would only delay the others.
      const now = performance.now()
      const late = batch.filter(({ giveUpAt }) => now >= giveUpAt)
      for (const one of late) fail(one, options.refuse())
      const live = late.length === 0 ? batch : batch.filter((one) => !late.includes(one))
      const writing = live.length > 0 ? writeTogether(lane, live) : nothingToTell
      // To answer a whole batch takes a while, in which the next is already being written.
      tellLast()
      tellLast = await writing
      if (options.gatherMs && lane.line.length + batch.length <= handful) {
        tellLast()
        tellLast = nothingToTell
        await gather(lane, batch.length, options.gatherMs)
      }
    }
    tellLast()
    lane.writing = undefined
    for (const [group, one] of own) if (one === lane) own.delete(group)
  }

  /** How many from the front of the line go into one write. */
  function countFitting({ line }: Lane<Item, Outcome>, wanted: number): number {
    const most = Math.min(wanted, line.length, options.maxItems)
    let size = 0
    for (let count = 0; count < most; count++) {
      size += options.sizeOf((line[count] as Waiting<Item, Outcome>).item)
      if (size > options.maxSize) return Math.max(count, 1)
    }
    return most
  }

  /**
   * Waits for those just answered, as callers who ask one thing after the other do so again at once. Otherwise one part
   * of them would go on being written while the other waits.
   */
  async function gather(lane: Lane<Item, Outcome>, answered: number, mostMs: number): Promise<void> {
    if (lane.ungathered > 0) {
      lane.ungathered -= 1
      return
    }
    const wanted = lane.line.length + answered
    const gathered = Promise.withResolvers<void>()
    const tooLate = setTimeout(gathered.resolve, mostMs)
    lane.gathering = { wanted, end: gathered.resolve }
    await gathered.promise
    lane.gathering = undefined
    clearTimeout(tooLate)
    if (lane.line.length < wanted) lane.ungathered = ungatheredWrites
  }

  /** Resolves, once it is written, with what tells everyone in the batch their outcome. */
  async function writeTogether(lane: Lane<Item, Outcome>, batch: Batch): Promise<() => void> {
    try {
      // The first of a batch has waited longest, and so gives up first.
      options.onWrite?.(batch.length, performance.now() + options.patienceMs - (batch[0]?.giveUpAt ?? 0))
      const outcomes = await options.write(batch.map(({ item }) => item))
      waiting -= batch.length
      return () =>
        batch.forEach(({ resolve }, position) => {
          resolve(outcomes[position] as Outcome)
        })
    } catch (error) {
      const fault = options.faultOf(error)
      if (fault === 'busy') separate(lane, batch)
      else if (fault === 'item' && batch.length > 1) {
        // By halves, the bad item is alone after a few writes and the others are written.
        const half = Math.ceil(batch.length / 2)
        const tellSome = await writeTogether(lane, batch.slice(0, half))
        tellSome()
        return writeTogether(lane, batch.slice(half))
      } else for (const one of batch) fail(one, error)
      return nothingToTell
    }
  }

  function fail({ reject }: Waiting<Item, Outcome>, error: unknown): void {
    waiting -= 1
    reject(error)
  }

  /** Everyone in the batch goes on in the lane of their group, where only that group's rows can stop them. */
  function separate(lane: Lane<Item, Outcome>, batch: Batch): void {
    for (const one of batch) {
      if (lane === common) enqueue(laneOfItsOwn(options.groupOf(one.item)), one)
      else lane.line.push(one)
    }
  }

  function laneOfItsOwn(group: unknown): Lane<Item, Outcome> {
    const lane = own.get(group) ?? emptyLane()
    own.set(group, lane)
    return lane
  }

  return {
    add(item) {
      return new Promise((resolve, reject) => {
        if (waiting >= options.maxWaiting) return reject(options.refuse())
        waiting += 1
        const giveUpAt = performance.now() + options.patienceMs
        enqueue(own.get(options.groupOf(item)) ?? common, { item, giveUpAt, resolve, reject })
      })
    },
    async drain() {
      for (;;) {
        const writing = [common, ...own.values()].map((lane) => lane.writing).filter((one) => one !== undefined)
        if (writing.length === 0) return
        await Promise.all(writing)
      }
    },
  }
}
