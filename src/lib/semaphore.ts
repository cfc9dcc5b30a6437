/** What a piece of work needs beside a permit. */
export type Claim = {
  /** On whose behalf it is done; the operator's when it is not given. */
  tenant?: unknown
  /** Works with the same key run one after the other. */
  key?: unknown
}

type Options = {
  permits: number
  /** How many permits, and how much of the line, one tenant may have; all of them by default. */
  permitsPerTenant?: number
  maxWaiting: number
  maxWaitingPerTenant?: number
  /** A waiter leaves the line after this time; never by default. */
  patienceMs?: number
  /** Makes the error for a caller who finds the line full, or has left it. */
  refuse(): Error
}

type Waiter = Claim & { start(): void }

/**
 * A semaphore that is fair to tenants: they take turns, whatever the number of waiters each of them has. Waiters whose
 * key is in use, or whose tenant has its share of permits, let others pass. Work that was given up is never started.
 */
export function createSemaphore({
  permits,
  permitsPerTenant = permits,
  maxWaiting,
  maxWaitingPerTenant = maxWaiting,
  patienceMs = 0,
  refuse,
}: Options): <T>(work: () => Promise<T>, claim?: Claim) => Promise<T> {
  /** The waiters of each tenant; the tenant whose turn is next comes first. */
  const lines = new Map<unknown, Waiter[]>()
  const permitsOf = new Map<unknown, number>()
  const keysInUse = new Set<unknown>()
  let free = permits
  let waiting = 0

  /** Work without a tenant is the operator's own, which has no share to keep to. */
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
    for (const line of lines.values()) line.find(canStart)?.start()
  }

  function leaveLine(waiter: Waiter, line: Waiter[]): void {
    line.splice(line.indexOf(waiter), 1)
    waiting -= 1
    if (line.length === 0) lines.delete(waiter.tenant)
  }

  function wait(claim: Claim): Promise<void> {
    const { tenant } = claim
    const line = lines.get(tenant) ?? []
    if (waiting >= maxWaiting || line.length >= maxWaitingPerTenant) throw refuse()
    return new Promise((resolve, reject) => {
      const giveUp = () => {
        leaveLine(waiter, line)
        reject(refuse())
      }
      const timer = patienceMs > 0 ? setTimeout(giveUp, patienceMs) : undefined
      const waiter: Waiter = {
        ...claim,
        start() {
          clearTimeout(timer)
          leaveLine(waiter, line)
          // The tenant's next turn comes after that of all others.
          if (lines.delete(tenant)) lines.set(tenant, line)
          take(claim)
          resolve()
        },
      }
      line.push(waiter)
      lines.set(tenant, line)
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
