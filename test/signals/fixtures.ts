// What the tests of signals share: rows that no client can record, requests, and the rows that came of them.
import { onTestFinished, spyOn } from 'bun:test'
import { createServices } from '../../src/deps.ts'
import { createLog } from '../../src/log.ts'
import { type Answer, type Client, createClient } from '../client.ts'
import { serve, type Tenant, type TestService } from '../service.ts'

/** Signals that no limit counts: 1,000 a second from the first of the month on, every tenth negative. */
export async function fillSignals(
  { services }: TestService,
  prompt: string,
  count: number,
  filler = '',
): Promise<void> {
  for (let from = 1; from <= count; from += 4_000) {
    await services.db.sql`
      insert into signals (organisation_id, prompt_id, value, metadata, created_at)
      select p.organisation_id, p.id, case when n % 10 = 0 then 'negative' else 'positive' end,
        jsonb_build_object('n', n, 'filler', ${filler}::text),
        timestamptz '2026-11-01T00:00:00Z' + n * interval '1 millisecond'
      from prompts p, generate_series(${from}::int, ${Math.min(from + 3_999, count)}::int) n
      where p.public_id = ${prompt}`
  }
}

/** More bytes of signals than the buffers between the service and a client hold. */
export const fillLargeSignals = (service: TestService, prompt: string): Promise<void> =>
  fillSignals(service, prompt, 10_000, 'x'.repeat(1_500))

export async function fillEvery(
  { services }: TestService,
  prompt: string,
  from: string,
  count: number,
  seconds = 60,
): Promise<void> {
  await services.db.sql`
    insert into signals (organisation_id, prompt_id, value, created_at)
    select p.organisation_id, p.id, 'positive', ${from}::text::timestamptz + n * ${`${seconds} seconds`}::text::interval
    from prompts p, generate_series(0, ${count - 1}::int) n where p.public_id = ${prompt}`
}

/** More prompts, each with one signal of October. */
export async function fillPrompts({ services }: TestService, org: string, count: number): Promise<void> {
  await services.db.sql`
    with created as (
      insert into prompts (public_id, organisation_id, name, created_at)
      select 'pmt_' || o.id || '_' || n, o.id, 'many', now()
      from organisations o, generate_series(1, ${count}::int) n
      where o.public_id = ${org}
      returning id, organisation_id
    )
    insert into signals (organisation_id, prompt_id, value, created_at)
    select organisation_id, id, 'positive', timestamptz '2026-10-01T00:00:00Z' from created`
}

/** Exports a prompt, or without one everything of the key's organisation. */
export const exportSignalsOf = (
  { call }: Client,
  key: string,
  prompt: string | null,
  query = '',
  headers: Record<string, string> = { 'accept-encoding': 'identity' },
): Promise<Answer> =>
  call('GET', `/api/v1/${prompt ? `prompts/${prompt}/` : ''}signals/export${query}`, { key, headers })

// biome-ignore lint/suspicious/noExplicitAny: tests look at metadata of every shape
export const signalsIn = ({ text }: { text: string }): Record<string, any>[] =>
  text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line))

export const idsIn = (answer: { text: string }): number[] => signalsIn(answer).map(({ id }) => id)

/** Posts a body as it is, not serialised from an object. */
export const postText = (
  { call }: Client,
  { prompt, key }: Pick<Tenant, 'prompt' | 'key'>,
  body: Bun.BodyInit,
  { path = 'signals', ...headers }: Record<string, string> = {},
): Promise<Answer> =>
  call('POST', `/api/v1/prompts/${prompt}/${path}`, {
    key,
    body,
    headers: { 'content-type': 'application/json', ...headers },
  })

export const postBatch = ({ post }: Client, { prompt, key }: Tenant, signals: unknown[]): Promise<Answer> =>
  post(`/prompts/${prompt}/signals/batch`, key, { signals })

export const statusesOf = ({ body }: Answer): number[] => body.data.map(({ status }: { status: number }) => status)

export async function organisationIdOf({ services }: TestService, { org }: { org: string }): Promise<number> {
  const [row] = await services.db.sql<{ id: number }>`select id from organisations where public_id = ${org}`
  return row?.id as number
}

/** The signals of an organisation, and what its months count of them. They must be equal. */
export async function countOf({ services }: TestService, { org }: { org: string }) {
  const [row] = await services.db.sql<{ rows: number; used: number }>`
    select
      (select count(*) from signals s where s.organisation_id = o.id) as rows,
      (select coalesce(sum(u.used), 0)::int from signal_usage u where u.organisation_id = o.id) as used
    from organisations o where o.public_id = ${org}`
  return row as { rows: number; used: number }
}

/** Another replica of the service, until the end of the test. */
export async function startReplica({ services: { db }, redis, clock }: TestService): Promise<Client> {
  const listener = serve(createServices({ db, redis, clock, log: createLog('silent') }))
  onTestFinished(() => listener.stop())
  return createClient(listener.url)
}

/** Another service on the same database, whose prunings run when called instead of every ten minutes. */
export function createPrunings({ services: { db }, clock }: TestService) {
  const intervals = spyOn(globalThis, 'setInterval')
  const { drain, log, metrics } = createServices({ db, clock, log: createLog('silent') })
  const calls = intervals.mock.calls as unknown as [round: () => Promise<void>, everyMs: number][]
  const runEvery = (ms: number) => {
    const rounds = calls.filter(([, everyMs]) => everyMs === ms)
    return () => Promise.all(rounds.map(([round]) => round()))
  }
  const [prune, measureSkew] = [runEvery(600_000), runEvery(60_000)]
  intervals.mockRestore()
  return { drain, log, metrics, prune, measureSkew }
}
