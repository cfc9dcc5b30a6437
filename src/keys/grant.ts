import type { Actor } from '../audit/record.ts'
import type { Clock } from '../clock.ts'
import { forbidden, invalid } from '../errors.ts'
import type { Scope } from '../lib/scopes.ts'

/** An actor cannot grant scopes that it lacks. */
export function requireGrantable({ scopes: held }: Actor, granted: Scope[]): void {
  const missing = held && granted.find((scope) => !held.includes(scope))
  if (missing) throw forbidden(missing)
}

/** An actor whose key expires cannot grant a longer life: else the holder would keep its scopes through another key. */
export function requireLifeWithin({ expiresAt: own }: Actor, expiresAt: Date | null): void {
  if (!own || !isLater(expiresAt, own)) return
  throw invalid('A key cannot grant a longer life than its own.', [
    {
      path: '/expires_at',
      message: `must be no later than ${own.toISOString()}, when the key of this request expires`,
    },
  ])
}

/** Compares two expiries; null means never. */
export const isLater = (expiresAt: Date | null, than: Date | null): boolean =>
  than !== null && (expiresAt === null || expiresAt > than)

export function requireFuture(expiresAt: Date | null, clock: Clock): void {
  if (expiresAt && expiresAt <= clock.now()) {
    throw invalid('The key would have expired already.', [{ path: '/expires_at', message: 'must be later than now' }])
  }
}
