// An organisation with a webhook and three linked prompts, and GitHub's side of it.
import { beforeEach } from 'bun:test'
import { randomUUID } from 'node:crypto'
import { sign } from '@octokit/webhooks-methods'
import { operator } from '../../src/audit/record.ts'
import { setWebhook } from '../../src/github/settings.ts'
import { requireOrganisation } from '../../src/orgs/manage.ts'
import type { Answer } from '../client.ts'
import type { TestService } from '../service.ts'
import { useService } from '../use.ts'
import { merged, pullRequest, push } from './payloads.ts'

export const paths = { greeting: 'prompts/greeting.md', farewell: 'prompts/farewell.md', other: 'prompts/other.md' }

/** A commit that changes the file of one prompt. */
export const change = { modified: [paths.greeting] }

type Name = keyof typeof paths
export type Sending = { delivery?: string; headers?: Record<string, string>; body?: string; secret?: string }

// biome-ignore lint/suspicious/noExplicitAny: a test looks at entries of every shape
export type Entry = Record<string, any>

export type Hook = Awaited<ReturnType<typeof createHook>>

/** A hook for each test of a file; read its fields inside tests. */
export function hookEachTest(service = useService()): { service: TestService; hook: Hook } {
  const hook = {} as Hook
  beforeEach(async () => {
    Object.assign(hook, await createHook(service))
  })
  return { service, hook }
}

export async function createHook(service: TestService, repository = 'Acme/Prompts') {
  const { db, clock } = service.services
  const tenant = await service.createTenant()
  const { secret, path } = await setWebhook(db, clock, await requireOrganisation(db, tenant.org), operator)
  const prompts = {} as Record<Name, string>
  for (const [name, path] of Object.entries(paths) as [Name, string][]) {
    const file = { repository, path }
    prompts[name] = await service.createPrompt(tenant, name, file)
  }

  async function deliver(event: string, payload: object, sending: Sending = {}): Promise<Answer> {
    const body = sending.body ?? JSON.stringify(payload)
    const headers = await headersOf(event, body, { secret, ...sending })
    return service.call('POST', path, { body, headers })
  }

  /** The history of a prompt, oldest first and without the ids. */
  async function history(name: Name, query = ''): Promise<Entry[]> {
    const { body } = await service.getHistory(prompts[name], tenant.key, `?limit=100${query}`)
    return body.data.map(({ id, ...entry }: Entry) => entry).reverse()
  }

  /** Delivers it and returns the number of entries that are new or changed. */
  async function send(event: string, payload: object, sending?: Sending): Promise<number> {
    const { status, text } = await deliver(event, payload, sending)
    if (status !== 200) throw new Error(`${status} ${text}`)
    return JSON.parse(text).data.recorded
  }

  return {
    tenant,
    secret,
    prompts,
    deliver,
    send,
    push: (given: Parameters<typeof push>[0]) => send('push', push(given)),
    pull: (...given: Parameters<typeof pullRequest>) => send('pull_request', pullRequest(...given)),
    merge: (given?: Parameters<typeof merged>[0]) => send('pull_request', merged(given)),
    history,
    /** The same in short: the action, the pull request and the commit of each. */
    story: async (name: Name): Promise<string[]> =>
      (await history(name)).map(({ action, pr_number, commit_sha }) => `${action} ${pr_number} ${commit_sha}`),
  }
}

/** The headers that GitHub sends; an empty one is left out. */
export async function headersOf(
  event: string,
  body: string,
  { secret = '', delivery = randomUUID(), headers = {} }: Sending,
): Promise<Record<string, string>> {
  const all = {
    'content-type': 'application/json',
    'x-github-delivery': delivery,
    'x-github-event': event,
    'x-hub-signature-256': body === '' ? '' : await sign(secret, body),
    ...headers,
  }
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== ''))
}

export const permutationsOf = <T>(items: readonly T[]): T[][] =>
  items.length === 0
    ? [[]]
    : items.flatMap((item, index) => permutationsOf(items.toSpliced(index, 1)).map((rest) => [item, ...rest]))
