// What the tests of exports share: many signals, and requests for them.
import type { TestService } from '../service.ts'

type Answer = Awaited<ReturnType<TestService['call']>>

/** Signals that no limit counts, put there directly: 1,000 a second from the first of the month on, every tenth negative. */
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

/** More bytes of signals than the buffers between the service and a caller hold. */
export const fillLargeSignals = (service: TestService, prompt: string): Promise<void> =>
  fillSignals(service, prompt, 10_000, 'x'.repeat(1_500))

/** Prompts beside those that there are, each with one signal. */
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
  { call }: TestService,
  key: string,
  prompt: string | null,
  query = '',
  headers: Record<string, string> = { 'accept-encoding': 'identity' },
): Promise<Answer> =>
  call('GET', `/api/v1/${prompt ? `prompts/${prompt}/` : ''}signals/export${query}`, { key, headers })

export const idsIn = ({ text }: { text: string }): number[] =>
  text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line).id)
