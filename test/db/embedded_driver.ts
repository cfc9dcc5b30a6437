import type { Duplex } from 'node:stream'
import postgres from 'postgres'

export function openDriver(
  engine: { connect(): Duplex },
  more: postgres.Options<Record<string, never>> = {},
): postgres.Sql {
  const options = { socket: engine.connect, max: 1, ssl: false as const, onnotice: () => {}, ...more }
  return postgres(options)
}
