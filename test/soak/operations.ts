// The requests of the soak: every operation of the interface, each with the status that it must be answered with.
import { randomUUID } from 'node:crypto'
import { sign } from '@octokit/webhooks-methods'
import { push } from '../github/payloads.ts'

export type Target = {
  url: string
  /** An organisation far from its limit. */
  roomy: { key: string; prompt: string }
  /** An organisation without any signals left. */
  full: { key: string; prompt: string }
  webhook: { path: string; secret: string; file: string }
}

export type Operation = {
  name: string
  /** How often it is chosen, relative to the others. */
  weight: number
  statuses: number[]
  send(target: Target): Promise<Response>
}

const post = ({ url }: Target, { key, prompt }: Target['full'], path: string, body: unknown, headers = {}) =>
  fetch(`${url}/api/v1/prompts/${prompt}/${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })

const get = (url: string, key: string, headers = {}) =>
  fetch(url, { headers: { authorization: `Bearer ${key}`, ...headers } })

const pick = <T>(from: readonly T[]): T => from[Math.floor(Math.random() * from.length)] as T

const signal = { value: 'positive', metadata: { session: 'soak' } }
const historyOf = ({ url, roomy }: Target) => `${url}/api/v1/prompts/${roomy.prompt}/history`
const queries = ['', '?page=2', '?page=1000000', '?limit=100', '?action=deployed', '?since=2026-01-01T00:00:00Z']
const recentKeys: string[] = []
let lastTag = ''

export const operations: Operation[] = [
  { name: 'signal', weight: 40, statuses: [201], send: (target) => post(target, target.roomy, 'signals', signal) },
  {
    name: 'large signal',
    weight: 4,
    statuses: [201],
    send: (target) => post(target, target.roomy, 'signals', { ...signal, metadata: { text: 'x'.repeat(8_000) } }),
  },
  {
    name: 'signal with a key, new or repeated',
    weight: 15,
    statuses: [201],
    send(target) {
      if (recentKeys.length < 50 || Math.random() < 0.7) recentKeys.push(randomUUID())
      if (recentKeys.length > 100) recentKeys.shift()
      return post(target, target.roomy, 'signals', signal, { 'idempotency-key': pick(recentKeys) })
    },
  },
  {
    name: 'signal past the limit',
    weight: 5,
    statuses: [429],
    send: (target) => post(target, target.full, 'signals', signal),
  },
  {
    name: 'invalid signal',
    weight: 3,
    statuses: [422],
    send: (target) => post(target, target.roomy, 'signals', { value: 'maybe' }),
  },
  {
    name: 'page of history',
    weight: 15,
    statuses: [200],
    async send(target) {
      const response = await get(historyOf(target) + pick(queries), target.roomy.key)
      lastTag = response.headers.get('etag') ?? lastTag
      return response
    },
  },
  {
    name: 'page of history by its tag',
    weight: 5,
    statuses: [200, 304],
    send: (target) => get(historyOf(target), target.roomy.key, { 'if-none-match': lastTag }),
  },
  {
    name: 'history entry',
    weight: 4,
    statuses: [201],
    send: (target) =>
      post(target, target.roomy, 'history', {
        action: 'deployed',
        user: { name: 'Ada', email: 'ada@example.com' },
        commit_sha: randomUUID(),
        branch_name: 'main',
      }),
  },
  {
    name: 'delivery of GitHub',
    weight: 2,
    statuses: [200],
    async send({ url, webhook }) {
      const body = JSON.stringify(
        push({ repository: 'acme/prompts', commits: [{ id: randomUUID(), modified: [webhook.file] }] }),
      )
      return fetch(url + webhook.path, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'x-github-event': 'push',
          'x-github-delivery': randomUUID(),
          'x-hub-signature-256': await sign(webhook.secret, body),
        },
        body,
      })
    },
  },
  {
    name: 'unknown key',
    weight: 2,
    statuses: [401],
    send: (target) => get(historyOf(target), `psk_${randomUUID().replaceAll('-', '')}abcd`),
  },
  {
    name: 'unknown prompt',
    weight: 2,
    statuses: [404],
    send: ({ url, roomy }) => get(`${url}/api/v1/prompts/pmt_none/history`, roomy.key),
  },
  { name: 'metrics', weight: 1, statuses: [200], send: ({ url }) => fetch(`${url}/metrics`) },
  { name: 'readiness', weight: 1, statuses: [200], send: ({ url }) => fetch(`${url}/readyz`) },
  { name: 'documentation', weight: 1, statuses: [200], send: ({ url }) => fetch(`${url}/docs/json`) },
]

const totalWeight = operations.reduce((sum, { weight }) => sum + weight, 0)

export function chooseOperation(): Operation {
  let rest = Math.random() * totalWeight
  for (const operation of operations) {
    rest -= operation.weight
    if (rest < 0) return operation
  }
  return operations[0] as Operation
}
