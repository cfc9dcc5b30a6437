type InFlight = { requests: number; bytes: number }

type Options = {
  perTenant: InFlight
  inAll: InFlight
  rejectWith(): Error
}

/** Bounds the requests in flight, and the bytes of their bodies, per tenant and in total. */
export function createInFlightLimiter({ perTenant, inAll, rejectWith }: Options) {
  const total: InFlight = { requests: 0, bytes: 0 }
  const byTenant = new Map<unknown, InFlight>()

  /** Counts a request. Throws over the limit. */
  function enter(tenant: unknown) {
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
    return {
      /** Counts bytes of the body before they are buffered. Throws over the limit. */
      reserve: (bytes: number) => take(0, bytes),
      leave() {
        add(-1, -reserved)
        if (own.requests === 0) byTenant.delete(tenant)
      },
    }
  }

  return {
    enter,
    async run<T>(tenant: unknown, work: (reserve: (bytes: number) => void) => Promise<T>): Promise<T> {
      const { reserve, leave } = enter(tenant)
      try {
        return await work(reserve)
      } finally {
        leave()
      }
    },
  }
}

const hasRoom = (used: InFlight, max: InFlight, requests: number, bytes: number): boolean =>
  used.requests + requests <= max.requests && used.bytes + bytes <= max.bytes
