import { unavailable } from '../errors.ts'

/** Resolves in the next turn of the event loop, when the requests that have arrived by now were read. */
export const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** Runs one look-up at a time. Keys requested meanwhile share the next, so a value is never older than its request. */
export function createDataLoader<Value, Key = string>(
  /** Finds the values, by the id of each key. */
  lookUp: (keys: Key[]) => Promise<Map<string, Value>>,
  idOf: (key: Key) => string = String,
  maxBatch = Number.POSITIVE_INFINITY,
): (key: Key) => Promise<Value | undefined> {
  const queued = new Map<string, PromiseWithResolvers<Value | undefined> & { key: Key }>()
  let isRunning = false

  async function runAll(): Promise<void> {
    while (queued.size > 0) {
      const batch = [...queued].slice(0, maxBatch)
      for (const [id] of batch) queued.delete(id)
      try {
        const found = await lookUp(batch.map(([, { key }]) => key))
        for (const [id, { resolve }] of batch) resolve(found.get(id))
      } catch (error) {
        for (const [, { reject }] of batch) reject(error)
      }
    }
    isRunning = false
  }

  return (key) => {
    const id = idOf(key)
    const pending = queued.get(id) ?? { ...Promise.withResolvers<Value | undefined>(), key }
    queued.set(id, pending)
    if (!isRunning) {
      isRunning = true
      nextTurn().then(runAll)
    }
    return pending.promise
  }
}

export type PermitRequest = {
  /** Undefined for work of the operator, or of several tenants. */
  tenant?: unknown
  /** Work with the same key runs one at a time. */
  key?: unknown
  /** When the client stops waiting, on the clock of `performance.now()`. */
  deadline?: number | undefined
}

type Options = {
  /** Unlimited by default, as is the queue: then only work with the same key waits. */
  permits?: number
  permitsPerTenant?: number
  maxWaiting?: number
  maxWaitingPerTenant?: number
  /** How long a waiter stays in the queue, unless its deadline is earlier; forever by default. */
  patienceMs?: number
  /** The error for a full queue (overload) and for a timeout. */
  rejectWith?(reason: 'overload' | 'timeout'): Error
}

type Waiter = PermitRequest & { start(): void }

export type Limiter = ReturnType<typeof createSemaphore>

/** Serves tenants round-robin. Overtakes waiters whose key is in use or whose tenant holds its share of permits. */
export function createSemaphore({
  permits = Number.POSITIVE_INFINITY,
  permitsPerTenant = permits,
  maxWaiting = Number.POSITIVE_INFINITY,
  maxWaitingPerTenant = maxWaiting,
  patienceMs = Number.POSITIVE_INFINITY,
  rejectWith = unavailable,
}: Options) {
  /** The waiters of each tenant; the next tenant to be served comes first. */
  const queues = new Map<unknown, Waiter[]>()
  const permitsOf = new Map<unknown, number>()
  const keysInUse = new Set<unknown>()
  let free = permits
  let waiting = 0

  /** Work that is not of one tenant has no share to keep to. */
  const hasShare = (tenant: unknown): boolean => tenant === undefined || (permitsOf.get(tenant) ?? 0) < permitsPerTenant

  const canStart = ({ tenant, key }: PermitRequest): boolean => free > 0 && hasShare(tenant) && !keysInUse.has(key)

  function take({ tenant, key }: PermitRequest): void {
    free -= 1
    permitsOf.set(tenant, (permitsOf.get(tenant) ?? 0) + 1)
    if (key !== undefined) keysInUse.add(key)
  }

  function release({ tenant, key }: PermitRequest): void {
    free += 1
    const left = (permitsOf.get(tenant) ?? 0) - 1
    if (left > 0) permitsOf.set(tenant, left)
    else permitsOf.delete(tenant)
    keysInUse.delete(key)
    // With unlimited permits, only waiters of the same tenant wait for this key.
    const startable = permits === Number.POSITIVE_INFINITY ? [queues.get(tenant) ?? []] : queues.values()
    // A tenant with further waiters is put behind the others, and is thus seen again in the same loop.
    for (const queue of startable) queue.find(canStart)?.start()
  }

  function dequeue(waiter: Waiter, queue: Waiter[]): void {
    queue.splice(queue.indexOf(waiter), 1)
    waiting -= 1
    if (queue.length === 0) queues.delete(waiter.tenant)
  }

  function wait(request: PermitRequest): Promise<void> {
    const { tenant, deadline = Number.POSITIVE_INFINITY } = request
    const queue = queues.get(tenant) ?? []
    if (waiting >= maxWaiting || queue.length >= maxWaitingPerTenant) throw rejectWith('overload')
    return new Promise((resolve, reject) => {
      const onTimeout = () => {
        dequeue(waiter, queue)
        reject(rejectWith('timeout'))
      }
      const ms = Math.max(Math.min(patienceMs, deadline - performance.now()), 0)
      const timer = ms < Number.POSITIVE_INFINITY ? setTimeout(onTimeout, ms) : undefined
      const waiter: Waiter = {
        ...request,
        start() {
          clearTimeout(timer)
          dequeue(waiter, queue)
          // The tenant is served again after all others.
          if (queues.delete(tenant)) queues.set(tenant, queue)
          take(request)
          resolve()
        },
      }
      queue.push(waiter)
      queues.set(tenant, queue)
      waiting += 1
    })
  }

  /** Undefined when there is a permit. Every waiter that can start has been started, so none of them is overtaken. */
  function enter(request: PermitRequest): Promise<void> | undefined {
    if (!canStart(request)) return wait(request)
    take(request)
    return undefined
  }

  return Object.assign(
    async <T>(work: () => Promise<T>, request: PermitRequest = {}): Promise<T> => {
      const waiting = enter(request)
      if (waiting) await waiting
      try {
        return await work()
      } finally {
        release(request)
      }
    },
    {
      /** Resolves with the function that releases the permit, to be called once. */
      async acquire(request: PermitRequest = {}) {
        await enter(request)
        return () => release(request)
      },
    },
  )
}
