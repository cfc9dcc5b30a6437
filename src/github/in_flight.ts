import { ServiceError } from '../errors.ts'

type Usage = { deliveries: number; bytes: number }

const mebibyte = 1024 * 1024
/** One organisation gets a quarter of the total: room for one of the largest bodies, and for many ordinary ones. */
const maxOfOrganisation: Usage = { deliveries: 128, bytes: 32 * mebibyte }
const maxInAll: Usage = { deliveries: 512, bytes: 128 * mebibyte }

/** Runs work on a delivery, which says by `reserve` how many bytes of its body it is about to keep in memory. */
type InFlightLimiter = <T>(organisationId: number, work: (reserve: (bytes: number) => void) => Promise<T>) => Promise<T>

/**
 * Bounds the deliveries that are in flight, and the bytes of their bodies. A signature can only be checked once the
 * whole body has arrived, so that anyone who knows an organisation's id can make the service hold bodies in memory.
 */
export function createInFlightLimiter(): InFlightLimiter {
  const inAll: Usage = { deliveries: 0, bytes: 0 }
  const byOrganisation = new Map<number, Usage>()

  return async (organisationId, work) => {
    const own = byOrganisation.get(organisationId) ?? { deliveries: 0, bytes: 0 }
    let reserved = 0

    function take(deliveries: number, bytes: number): void {
      if (!hasRoom(own, maxOfOrganisation, deliveries, bytes) || !hasRoom(inAll, maxInAll, deliveries, bytes)) {
        throw tooMany()
      }
      add(deliveries, bytes)
      reserved += bytes
    }

    function add(deliveries: number, bytes: number): void {
      for (const usage of [own, inAll]) {
        usage.deliveries += deliveries
        usage.bytes += bytes
      }
    }

    take(1, 0)
    byOrganisation.set(organisationId, own)
    try {
      return await work((bytes) => take(0, bytes))
    } finally {
      add(-1, -reserved)
      if (own.deliveries === 0) byOrganisation.delete(organisationId)
    }
  }
}

const hasRoom = (used: Usage, max: Usage, deliveries: number, bytes: number): boolean =>
  used.deliveries + deliveries <= max.deliveries && used.bytes + bytes <= max.bytes

const tooMany = () =>
  new ServiceError(
    'internal_error',
    'Too many deliveries are under way. Send this one again shortly.',
    {},
    { 'retry-after': '1' },
  )
