// Reads the interface of this program out of its code, without a database.
import { createApp } from '../src/app.ts'
import { loadCommands } from '../src/cli/groups.ts'
import { systemClock } from '../src/clock.ts'
import { settings } from '../src/config.ts'
import type { Services } from '../src/deps.ts'
import { createDrain } from '../src/http/drain.ts'
import { createLog } from '../src/log.ts'
import { createMetrics } from '../src/ops/metrics.ts'

/** The OpenAPI document. Nothing is there but what surrounds every request. */
export async function readDocument(): Promise<string> {
  const log = createLog('silent')
  const around = { clock: systemClock, log, metrics: createMetrics(log), drain: createDrain(), rateLimits: {} }
  const app = createApp(around as unknown as Services)
  return (await app.fetch(new Request('http://localhost/docs/json'))).text()
}

/** What `/metrics` shows, without values that only a database has. */
export function describeMetrics(): string {
  const metrics = createMetrics(createLog('silent'))
  metrics.watchDatabase(() => ({ pending: 0, connections: 1 }))
  metrics.describeBuild({ version: '', commit: '', runtime: '' })
  return metrics.text()
}

/** Everything that the version number covers, but events: these are compared as they are sent. */
export async function readInterface() {
  return {
    document: JSON.parse(await readDocument()),
    settings: Object.fromEntries(
      Object.entries(settings).map(([name, { type, fallback = null }]) => [name, { type, fallback }]),
    ),
    commands: (await loadCommands()).map(({ usage }) => usage),
    metrics: Object.fromEntries(
      [...describeMetrics().matchAll(/^# TYPE (\S+) (\w+)$/gm)].map(([, name, type]) => [name, type]),
    ),
  }
}

export type Interface = Awaited<ReturnType<typeof readInterface>>
