// Makes generated/api.d.ts: the types of the interface, from the OpenAPI document of the routes, for the console's requests.
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import openapiTypes, { astToString } from 'openapi-typescript'
import { documentedRoutes } from '../src/app.ts'
import type { Services } from '../src/deps.ts'
import { createRouteWrapper } from '../src/http/answer.ts'
import { writeDocument } from '../src/http/docs.ts'

const generated = join(import.meta.dirname, '../generated')

// The routes are described and not called, so nothing that they depend on is there.
const absent = {} as Services
const document = await writeDocument(documentedRoutes(absent, createRouteWrapper(absent)))
const types = await openapiTypes(JSON.parse(document), { alphabetize: true })
await mkdir(generated, { recursive: true })
await writeFile(join(generated, 'api.d.ts'), astToString(types))
