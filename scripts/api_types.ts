// Makes generated/api.d.ts: the types of the interface, from the OpenAPI document of the service, for the console's requests.
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import openapiTypes, { astToString } from 'openapi-typescript'
import { createApp } from '../src/app.ts'
import { systemClock } from '../src/clock.ts'
import type { Services } from '../src/deps.ts'
import { createDrain } from '../src/http/drain.ts'
import { createLog } from '../src/log.ts'
import { createMetrics } from '../src/ops/metrics.ts'

const generated = join(import.meta.dirname, '../generated')

// Only the document is asked for, so that nothing is there but what surrounds every request.
const log = createLog('silent')
const around = {
  clock: systemClock,
  log,
  metrics: createMetrics(log),
  drain: createDrain(),
  rateLimits: {},
}
const app = createApp(around as Services)
const document = await (await app.fetch(new Request('http://localhost/docs/json'))).text()
await mkdir(generated, { recursive: true })
await writeFile(join(generated, 'api.d.ts'), astToString(await openapiTypes(document, { alphabetize: true })))
