import createClient from 'openapi-fetch'
import type { paths } from '../../../generated/api.d.ts'
import { failureOf, RequestFailed } from './failure.ts'
import { root } from './root.ts'
import { currentKey } from './session.ts'

/** The interface, typed by its document. */
export const api = createClient<paths>({ baseUrl: root.href.replace(/\/$/, '') })

api.use({
  onRequest({ request }) {
    request.headers.set('authorization', `Bearer ${currentKey()}`)
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
