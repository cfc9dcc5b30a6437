// A lane is a queue with one write in flight, or a few where commits are slow. What arrives meanwhile is the next batch. A
// group whose rows are locked by another transaction has its own lane until its queue is empty, so that it delays no other.
// After a small batch, a lane lingers for up to a millisecond: many callers send again immediately, and then share the next
// batch.
import { unavailable } from '../errors.ts'
import { nextTurn } from '../lib/concurrency.ts'

/** Why nothing was written: one of the items is bad, or the rows of a group are locked. */
type Fault = 'bad_row' | 'lock_timeout'

type Options<Item, Outcome> = {
  /** Writes all items in one transaction and returns their outcomes in order. */
  write(items: Item[]): Promise<Outcome[]>
  /** Returns undefined for a failure that no item caused. */
  classifyError(error: unknown): Fault | undefined
  /** Items of one group may delay each other, but never those of another group. */
  groupOf(item: Item): unknown
  maxBatch: number
  weightOf(item: Item): number
  /** The maximum weight of a batch, which only a batch of one item may exceed. */
  maxBatchWeight: number
  /** The size of the queue. A group may add an item only while it has fewer items in it than there are free places. */
  maxQueued: number
  /** An item whose write has not started by then, on the clock of `performance.now()`, is rejected and never written. */
  deadlineOf(item: Item): number
  lingerMs: number
  /** How many writes may be in flight. Those of a group with its own lane never overlap. */
  maxWrites(): number
  /** Called when a write starts, with the number of its items and how long the first of them waited. */
  onWrite?: (items: number, waitedMs: number) => void
}

type Queued<Item, Outcome> = {
  item: Item
  addedAt: number
  deadline: number
  resolve(outcome: Outcome): void
  reject(error: unknown): void
}

/** Lingering waits for at most this many callers: with more, writing and answering overlap anyway. */
const maxLingerBatch = 20
/** After lingering without result, this many batches do not linger. */
const lingerCooldown = 15

class Lane<Item, Outcome> {
  queue: Queued<Item, Outcome>[] = []
  /** The running loops. A loop writes batch after batch, until the queue is empty or too many loops run. */
  writing = new Set<Promise<void>>()
  /** While lingering: the number of queued items that ends it, and the function that does. */
  lingering: { items: number; end(): void } | undefined
  cooldown = 0
}

const nothingToAnswer = () => {}

export function createGroupCommit<Item, Outcome>(options: Options<Item, Outcome>) {
  type Batch = Queued<Item, Outcome>[]
  const common = new Lane<Item, Outcome>()
  const own = new Map<unknown, Lane<Item, Outcome>>()
  const queuedByGroup = new Map<unknown, number>()
  let queued = 0

  function countQueued(group: unknown, change: 1 | -1): void {
    queued += change
    const number = (queuedByGroup.get(group) ?? 0) + change
    if (number === 0) queuedByGroup.delete(group)
    else queuedByGroup.set(group, number)
  }

  const maxWritesOf = (lane: Lane<Item, Outcome>): number => (lane === common ? options.maxWrites() : 1)

  function enqueue(lane: Lane<Item, Outcome>, one: Queued<Item, Outcome>): void {
    lane.queue.push(one)
    if (lane.lingering && lane.queue.length >= lane.lingering.items) lane.lingering.end()
    if (lane.writing.size < maxWritesOf(lane)) start(lane)
  }

  function start(lane: Lane<Item, Outcome>): void {
    const writing: Promise<void> = nextTurn().then(() => writeAll(lane, () => lane.writing.delete(writing)))
    lane.writing.add(writing)
  }

  async function writeAll(lane: Lane<Item, Outcome>, end: () => void): Promise<void> {
    let answerLast = nothingToAnswer
    let lastBatch = 0
    while (lane.queue.length > 0 && lane.writing.size <= maxWritesOf(lane)) {
      const isCrowded = queuedByGroup.size > 1 && countFitting(lane.queue, lastBatch) < lane.queue.length
      if (isCrowded) lane.queue = takeTurns(lane.queue)
      const batch = lane.queue.splice(0, countFitting(lane.queue, lastBatch))
      lastBatch = batch.length
      const writing = writeBatch(lane, batch)
      // The next batch is written while the callers of the last one are answered.
      answerLast()
      answerLast = await writing
      if (options.lingerMs > 0 && lane.queue.length + lastBatch <= maxLingerBatch) {
        answerLast()
        answerLast = nothingToAnswer
        await linger(lane, lastBatch)
      }
    }
    answerLast()
    for (const [group, one] of own) if (one === lane) own.delete(group)
    end()
  }

  function countFitting(queue: Batch, lastBatch: number): number {
    const { maxBatch, weightOf, maxBatchWeight } = options
    const wanted = Math.min(nextBatchSize(queue.length, lastBatch, maxBatch), queue.length)
    let weight = 0
    const heavy = queue.findIndex(({ item }, index) => {
      weight += weightOf(item)
      return index === wanted || weight > maxBatchWeight
    })
    return heavy < 0 ? wanted : Math.max(heavy, 1)
  }

  /** Orders the items so that the groups take turns: none waits for the whole queue of another. */
  function takeTurns(queue: Batch): Batch {
    const turns: Batch[] = []
    const turnOf = new Map<unknown, number>()
    for (const one of queue) {
      const group = options.groupOf(one.item)
      const turn = turnOf.get(group) ?? 0
      turnOf.set(group, turn + 1)
      const others = turns[turn]
      if (others) others.push(one)
      else turns[turn] = [one]
    }
    return turns.flat()
  }

  function rejectLate(batch: Batch): Batch {
    const now = performance.now()
    if (batch.every(({ deadline }) => now < deadline)) return batch
    for (const one of batch) if (now >= one.deadline) fail(one, unavailable('timeout'))
    return batch.filter(({ deadline }) => now < deadline)
  }

  async function linger(lane: Lane<Item, Outcome>, answered: number): Promise<void> {
    if (lane.cooldown > 0) {
      lane.cooldown -= 1
      return
    }
    const items = lane.queue.length + answered
    const over = Promise.withResolvers<void>()
    const timer = setTimeout(over.resolve, options.lingerMs)
    lane.lingering = { items, end: over.resolve }
    await over.promise
    lane.lingering = undefined
    clearTimeout(timer)
    if (lane.queue.length < items) lane.cooldown = lingerCooldown
  }

  /** Resolves once the batch is written, with a function that answers its callers. */
  async function writeBatch(lane: Lane<Item, Outcome>, all: Batch): Promise<() => void> {
    const batch = rejectLate(all)
    if (batch.length === 0) return nothingToAnswer
    try {
      options.onWrite?.(batch.length, performance.now() - (batch[0]?.addedAt ?? 0))
      const outcomes = await options.write(batch.map(({ item }) => item))
      for (const { item } of batch) countQueued(options.groupOf(item), -1)
      return () =>
        batch.forEach(({ resolve }, position) => {
          resolve(outcomes[position] as Outcome)
        })
    } catch (error) {
      const fault = options.classifyError(error)
      if (fault === 'lock_timeout') {
        for (const one of batch) enqueue(lane === common ? laneOf(options.groupOf(one.item)) : lane, one)
      } else if (fault === 'bad_row' && batch.length > 1) {
        // Halving isolates the bad item after a few writes, and records the others.
        const half = Math.ceil(batch.length / 2)
        const answerFirst = await writeBatch(lane, batch.slice(0, half))
        answerFirst()
        return writeBatch(lane, batch.slice(half))
      } else for (const one of batch) fail(one, error)
      return nothingToAnswer
    }
  }

  function fail({ item, reject }: Queued<Item, Outcome>, error: unknown): void {
    countQueued(options.groupOf(item), -1)
    reject(error)
  }

  function laneOf(group: unknown): Lane<Item, Outcome> {
    const lane = own.get(group) ?? new Lane<Item, Outcome>()
    own.set(group, lane)
    return lane
  }

  return {
    add(item: Item): Promise<Outcome> {
      const group = options.groupOf(item)
      return new Promise((resolve, reject) => {
        // The first group may fill half of the queue, the next one a quarter, and so on: there is always room for another.
        if ((queuedByGroup.get(group) ?? 0) >= options.maxQueued - queued) return reject(unavailable('overload'))
        countQueued(group, 1)
        const [addedAt, deadline] = [performance.now(), options.deadlineOf(item)]
        enqueue(own.get(group) ?? common, { item, addedAt, deadline, resolve, reject })
      })
    },
    async drain(): Promise<void> {
      for (;;) {
        const writing = [common, ...own.values()].flatMap((lane) => [...lane.writing])
        if (writing.length === 0) return
        await Promise.all(writing)
      }
    },
  }
}

/** A smaller batch is never split: two writes would cost the database more than the overlap gains. */
const minBatch = 128

/** Half of the active callers: one half is written while the other half is answered and sends again. */
const nextBatchSize = (queued: number, lastBatch: number, maxBatch: number): number =>
  Math.min(Math.max(minBatch, Math.ceil((queued + lastBatch) / 2)), maxBatch)
