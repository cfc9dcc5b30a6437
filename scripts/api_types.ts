// Makes the types of the interface from the OpenAPI document of the service: generated/api.d.ts for the console, and
// clients/typescript/src/openapi.d.ts, without errors and headers, for the package.
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
await writeTypes(join(generated, 'api.d.ts'), document)

const short = JSON.parse(document)
for (const operation of Object.values(short.paths).flatMap((methods) => Object.values(methods as object))) {
  for (const status of Object.keys(operation.responses)) if (!status.startsWith('2')) delete operation.responses[status]
  for (const response of Object.values<{ headers?: object }>(operation.responses)) delete response.headers
}
await writeTypes(join(generated, '../clients/typescript/src/openapi.d.ts'), JSON.stringify(short))

async function writeTypes(path: string, document: string): Promise<void> {
  await writeFile(path, astToString(await openapiTypes(document, { alphabetize: true, defaultNonNullable: false })))
}
