// An HTTP client that checks every response of the suite against the served OpenAPI document.
import { createContract } from './contract.ts'

export type Answer = {
  status: number
  headers: Headers
  text: string
  // biome-ignore lint/suspicious/noExplicitAny: a test looks at answers of every shape
  body: any
}

type Options = { key?: string; headers?: Record<string, string>; body?: Bun.BodyInit; json?: unknown }

export type Client = {
  call(method: string, path: string, options?: Options): Promise<Answer>
  getHistory(prompt: string, key: string, query?: string): Promise<Answer>
  postSignal(prompt: string, key: string, json?: unknown): Promise<Answer>
}

export async function createClient(url: string): Promise<Client> {
  const contract = createContract(await (await fetch(`${url}/docs/json`)).json())

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

  return {
    call,
    getHistory: (prompt, key, query = '') => call('GET', `/api/v1/prompts/${prompt}/history${query}`, { key }),
    postSignal: (prompt, key, json = { value: 'positive' }) =>
      call('POST', `/api/v1/prompts/${prompt}/signals`, { key, json }),
  }
}
