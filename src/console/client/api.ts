import createClient, { type ClientPathsWithMethod, type MethodResponse } from 'openapi-fetch'
import type { components, paths } from '../../../generated/api.d.ts'
import { failureOf, RequestFailed } from './failure.ts'
import { root } from './router.ts'
import { bearerOf, currentKey } from './session.ts'

/** The types of the interface by their names in its document. */
export type Schemas = components['schemas']
export type OwnKey = Schemas['OwnApiKey']

/** The interface, typed by its document. */
export const api = createClient<paths>({
  baseUrl: root.href.replace(/\/$/, ''),
  // Its own leaves names as they are, and those of metadata are what somebody typed.
  querySerializer(query: Record<string, unknown>) {
    const given = Object.entries(query).filter(([, value]) => value !== undefined)
    return new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString()
  },
})

api.use({
  onRequest({ request }) {
    if (!request.headers.has('authorization')) request.headers.set('authorization', bearerOf(currentKey()))
  },
})

/** The answer of a request; throws `RequestFailed` for any other than the one hoped for. */
export async function answerOf<Data>(
  asked: Promise<{ data?: Data; error?: unknown; response: Response }>,
): Promise<Data> {
  const { data, error, response } = await asked.catch(() => {
    throw new RequestFailed({ kind: 'offline' })
  })
  if (data === undefined || !response.ok) throw new RequestFailed(failureOf(response, error))
  return data
}

/** What can be asked for: `ask` sends the request, and `name` is what its answer is kept under. */
export type Question<Data> = { name: string; ask(): Promise<Data> }

type GetPath = ClientPathsWithMethod<typeof api, 'get'>
type Parameters<Path extends GetPath> = paths[Path]['get']['parameters']
type OrNull<Values> = { [Name in keyof Values]: Values[Name] | null }
export type QueryOf<Path extends GetPath> = OrNull<NonNullable<Parameters<Path>['query']>>

/** A GET of the interface. Parameters of the query that are null or empty are left out. */
export function get<Path extends GetPath>(
  url: Path,
  { path, query }: Pick<Parameters<Path>, 'path'> & { query?: QueryOf<Path> },
): Question<MethodResponse<typeof api, 'get', Path>> {
  const given = Object.entries(query ?? {}).filter(([, value]) => value !== null && String(value) !== '')
  const params = { path, query: Object.fromEntries(given) }
  return { name: `${url} ${JSON.stringify(params)}`, ask: () => answerOf(api.GET(url, { params } as never)) }
}
