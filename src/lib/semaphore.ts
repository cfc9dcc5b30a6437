/** What a piece of work needs beside a permit. */
export type Claim = {
  /** The tenant that it is done for; undefined for the operator, and for several tenants at once. */
  tenant?: unknown
  /** Pieces of work with the same key run one after the other. */
  key?: unknown
  /** When its caller no longer waits for it, by the clock of `performance.now()`. */
  endsAt?: number | undefined
}

type Options = {
  permits: number
  /** How many permits one tenant may have; all by default. */
  permitsPerTenant?: number
  maxWaiting: number
  /** How much of the queue one tenant may have; all by default. */
  maxWaitingPerTenant?: number
  /** A waiter gives up after this time, or when its claim ends; never by default. */
  patienceMs?: number
  /** Makes the error for a caller who finds the queue full, or has given up. */
  rejectWith(): Error
}

type Waiter = Claim & { start(): void }

/**
 * A semaphore that is fair to tenants: they are served round-robin, whatever the number of waiters each of them has.
 * Waiters whose key is in use, or whose tenant has its share of permits, are overtaken. Work that was given up is never
 * started.
 */
export function createSemaphore({
  permits,
  permitsPerTenant = permits,
  maxWaiting,
  maxWaitingPerTenant = maxWaiting,
  patienceMs = Number.POSITIVE_INFINITY,
  rejectWith,
}: Options): <T>(work: () => Promise<T>, claim?: Claim) => Promise<T> {
  /** The waiters of each tenant; the next tenant to be served comes first. */
  const queues = new Map<unknown, Waiter[]>()
  const permitsOf = new Map<unknown, number>()
  const keysInUse = new Set<unknown>()
  let free = permits
  let waiting = 0

  /** Work that is not of one tenant has no share to keep to. */
  const hasShare = (tenant: unknown): boolean => tenant === undefined || (permitsOf.get(tenant) ?? 0) < permitsPerTenant

  const canStart = ({ tenant, key }: Claim): boolean => free > 0 && hasShare(tenant) && !keysInUse.has(key)

  function take({ tenant, key }: Claim): void {
    free -= 1
    permitsOf.set(tenant, (permitsOf.get(tenant) ?? 0) + 1)
    if (key !== undefined) keysInUse.add(key)
  }

  function release({ tenant, key }: Claim): void {
    free += 1
    const left = (permitsOf.get(tenant) ?? 0) - 1
    if (left > 0) permitsOf.set(tenant, left)
    else permitsOf.delete(tenant)
    keysInUse.delete(key)
    // A tenant with further waiters is put behind the others, and is thus seen again in the same loop.
    for (const queue of queues.values()) queue.find(canStart)?.start()
  }

  function dequeue(waiter: Waiter, queue: Waiter[]): void {
    queue.splice(queue.indexOf(waiter), 1)
    waiting -= 1
    if (queue.length === 0) queues.delete(waiter.tenant)
  }

  function wait(claim: Claim): Promise<void> {
    const { tenant, endsAt = Number.POSITIVE_INFINITY } = claim
    const queue = queues.get(tenant) ?? []
    if (waiting >= maxWaiting || queue.length >= maxWaitingPerTenant) throw rejectWith()
    return new Promise((resolve, reject) => {
      const giveUp = () => {
        dequeue(waiter, queue)
        reject(rejectWith())
      }
      const ms = Math.min(patienceMs, endsAt - performance.now())
      const timer = ms < Number.POSITIVE_INFINITY ? setTimeout(giveUp, ms) : undefined
      const waiter: Waiter = {
        ...claim,
        start() {
          clearTimeout(timer)
          dequeue(waiter, queue)
          // The tenant is served again after all others.
          if (queues.delete(tenant)) queues.set(tenant, queue)
          take(claim)
          resolve()
        },
      }
      queue.push(waiter)
      queues.set(tenant, queue)
      waiting += 1
    })
  }

  return async (work, claim = {}) => {
    // Every waiter that can start has been started, so this overtakes none of them.
    if (canStart(claim)) take(claim)
    else await wait(claim)
    try {
      return await work()
    } finally {
      release(claim)
    }
  }
}
