// Makes the types of the interface from the OpenAPI document of the service: generated/api.d.ts for the console, and
// clients/typescript/src/openapi.d.ts, without errors and headers, for the package.
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import openapiTypes, { astToString } from 'openapi-typescript'
import { readDocument } from './interface.ts'

const generated = join(import.meta.dirname, '../generated')

const document = await readDocument()
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
