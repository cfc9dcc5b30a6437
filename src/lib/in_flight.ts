/** How many requests are under way, and the bytes of their bodies. */
type InFlight = { requests: number; bytes: number }

type Options = {
  perTenant: InFlight
  inAll: InFlight
  /** Makes the error for a request that finds no room. */
  rejectWith(): Error
}

/** Runs work on a request, which says by `reserve` how many bytes of its body it is about to keep in memory. */
export type InFlightLimiter = <T>(tenant: unknown, work: (reserve: (bytes: number) => void) => Promise<T>) => Promise<T>

/** Bounds the requests that are in flight, and the bytes of their bodies, for each tenant and in all. */
export function createInFlightLimiter({ perTenant, inAll, rejectWith }: Options): InFlightLimiter {
  const total: InFlight = { requests: 0, bytes: 0 }
  const byTenant = new Map<unknown, InFlight>()

  return async (tenant, work) => {
    const own = byTenant.get(tenant) ?? { requests: 0, bytes: 0 }
    let reserved = 0

    function take(requests: number, bytes: number): void {
      if (!hasRoom(own, perTenant, requests, bytes) || !hasRoom(total, inAll, requests, bytes)) throw rejectWith()
      add(requests, bytes)
      reserved += bytes
    }

    function add(requests: number, bytes: number): void {
      for (const used of [own, total]) {
        used.requests += requests
        used.bytes += bytes
      }
    }

    take(1, 0)
    byTenant.set(tenant, own)
    try {
      return await work((bytes) => take(0, bytes))
    } finally {
      add(-1, -reserved)
      if (own.requests === 0) byTenant.delete(tenant)
    }
  }
}

const hasRoom = (used: InFlight, max: InFlight, requests: number, bytes: number): boolean =>
  used.requests + requests <= max.requests && used.bytes + bytes <= max.bytes
