// An HTTP client that checks every response of the suite against the served OpenAPI document.
import { type Contract, createContract } from './contract.ts'
import type { Tenant } from './tenant.ts'

export type Answer = {
  status: number
  headers: Response['headers']
  text: string
  // biome-ignore lint/suspicious/noExplicitAny: a test looks at answers of every shape
  body: any
}

type Headers = Record<string, string>

type Options = { key?: string; headers?: Headers; body?: Bun.BodyInit; json?: unknown }

export type Client = {
  call(method: string, path: string, options?: Options): Promise<Answer>
  /** The methods on a path below /api/v1, with a key; `json` is the body. */
  get(path: string, key: string, headers?: Headers): Promise<Answer>
  post(path: string, key: string, json?: unknown, headers?: Headers): Promise<Answer>
  put(path: string, key: string, json?: unknown, headers?: Headers): Promise<Answer>
  patch(path: string, key: string, json?: unknown, headers?: Headers): Promise<Answer>
  delete(path: string, key: string, headers?: Headers): Promise<Answer>
  getHistory(prompt: string, key: string, query?: string): Promise<Answer>
  postSignal(prompt: string, key: string, json?: unknown): Promise<Answer>
}

/** An answer that rejects fields or parameters: by their paths, or their paths and what is wrong with each. */
export const invalid = (...details: (string | [path: string, message: unknown])[]) => ({
  status: 422,
  body: {
    error: {
      code: 'validation_error',
      details: details.map((one) => (typeof one === 'string' ? { path: one } : { path: one[0], message: one[1] })),
    },
  },
})

/** The status and the error of an answer, without what differs between any two. */
export const errorOf = ({ status, body }: Pick<Answer, 'status' | 'body'>) => ({
  status,
  ...body.error,
  request_id: null,
})

/** Sends a signal without the checks, which would slow a load down. */
export const sendSignal = (url: string, { prompt, key }: Tenant, body = '{"value":"positive"}'): Promise<Response> =>
  fetch(`${url}/api/v1/prompts/${prompt}/signals`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body,
  })

/** By the text of the document: compiling one takes longer than most files' tests. */
const contracts = new Map<string, Contract>()

export async function createClient(url: string): Promise<Client> {
  const document = await (await fetch(`${url}/docs/json`)).text()
  const contract = contracts.get(document) ?? createContract(JSON.parse(document))
  contracts.set(document, contract)

  async function call(method: string, path: string, { key, headers = {}, body, json }: Options = {}): Promise<Answer> {
    const response = await fetch(url + path, {
      method,
      headers: {
        ...(key ? { authorization: `Bearer ${key}` } : {}),
        ...(json === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(json === undefined ? (body === undefined ? {} : { body }) : { body: JSON.stringify(json) }),
    })
    const text = await response.text()
    contract.check(method, url + path, response.status, response.headers, text)
    const isJson = response.headers.get('content-type')?.startsWith('application/json') && text !== ''
    return { status: response.status, headers: response.headers, text, body: isJson ? JSON.parse(text) : undefined }
  }

  const send =
    (method: string) =>
    (path: string, key: string, json?: unknown, headers: Headers = {}) =>
      call(method, `/api/v1${path}`, { key, headers, ...(json === undefined ? {} : { json }) })

  return {
    call,
    get: (path, key, headers) => send('GET')(path, key, undefined, headers),
    post: send('POST'),
    put: send('PUT'),
    patch: send('PATCH'),
    delete: (path, key, headers) => send('DELETE')(path, key, undefined, headers),
    getHistory: (prompt, key, query = '') => call('GET', `/api/v1/prompts/${prompt}/history${query}`, { key }),
    postSignal: (prompt, key, json = { value: 'positive' }) =>
      call('POST', `/api/v1/prompts/${prompt}/signals`, { key, json }),
  }
}
