import { ServiceError } from '../errors.ts'
import { createInFlightLimiter, type InFlightLimiter } from '../lib/in_flight.ts'

const mebibyte = 1024 * 1024

/**
 * Bounds the deliveries that are in flight. A signature can only be checked once the whole body has arrived, so that
 * anyone who knows an organisation's id can make the service hold bodies in memory. One organisation gets a quarter of
 * the total: room for one of the largest bodies, and for many ordinary ones.
 */
export const createDeliveryLimiter = (): InFlightLimiter =>
  createInFlightLimiter({
    perTenant: { requests: 128, bytes: 32 * mebibyte },
    inAll: { requests: 512, bytes: 128 * mebibyte },
    rejectWith: () =>
      new ServiceError(
        'internal_error',
        'Too many deliveries are under way. Send this one again shortly.',
        {},
        { 'retry-after': '1' },
      ),
  })
