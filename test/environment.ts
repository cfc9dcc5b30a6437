import { settings } from '../src/config.ts'

/** Zones so far from UTC that a month, or a day, taken by local time is another one for half of the day. */
export const farTimeZones = { postgres: 'Pacific/Kiritimati', embedded: 'Pacific/Pago_Pago' }

/** The developer's environment without the product's settings: in a test they come only from the test. */
export function cleanEnvironment(): Record<string, string | undefined> {
  const dropped = new Set(Object.keys(settings).flatMap((name) => [name, `${name}_FILE`]))
  const kept = Object.entries(process.env).filter(([name]) => !dropped.has(name))
  // Elysia answers differently in development, and users run production.
  return { ...Object.fromEntries(kept), NODE_ENV: 'production', TZ: farTimeZones.postgres }
}
