import { expect, test } from 'bun:test'
import { operator } from '../../src/audit/record.ts'
import type { Db, Sql } from '../../src/db/client.ts'
import { removeEntry } from '../../src/history/erase.ts'
import { parseReported, recordEntry, recordReported } from '../../src/history/record.ts'
import type { NewHistoryEntry } from '../../src/history/schema.ts'
import { DeadlineError } from '../../src/lib/deadline.ts'
import { requireOrganisation } from '../../src/orgs/manage.ts'
import { type Prompt, requirePrompt } from '../../src/prompts/find.ts'
import { changePrompt, createPrompt } from '../../src/prompts/manage.ts'
import { createSignalRollup } from '../../src/stats/rollup.ts'
import { createVerdictCheck } from '../../src/webhooks/announce.ts'
import { changeEndpoint } from '../../src/webhooks/endpoints.ts'
import { permutationsOf } from '../github/hook.ts'
import { addSignals, deployed, merged, onDays, signals } from '../impact/history.ts'
import { createTestClock, type TestService } from '../service.ts'
import { insertTenant } from '../tenant.ts'
import { useOpenDatabase } from '../use.ts'
import { insertEndpoints } from './emit.ts'

const db = useOpenDatabase()
const clock = createTestClock()
clock.set('2026-11-15T12:00:00Z')

const failures: unknown[] = []

/** The check of a replica that has just started. */
const createCheck = (on: Db = db, rollup = createSignalRollup(db)) =>
  createVerdictCheck({ db: on, clock, rollup }, { isStopping: () => false, onFailure: (error) => failures.push(error) })

const check = () => createCheck()()

const [before, after] = ['a'.repeat(40), 'b'.repeat(40)]

/** A prompt with two changes. */
async function addPrompt(org: string, name = 'greeting'): Promise<string> {
  const { id } = await createPrompt(db, clock, await requireOrganisation(db, org), { name })
  const prompt = await requirePrompt(db.sql, id)
  await recordEntry(db, clock, prompt, deployed(before, '2026-09-01T09:00:00Z'))
  await recordEntry(db, clock, prompt, merged(after, '2026-11-14T09:00:00Z', 7))
  return id
}

/** Sends signals on one day, those of the change before on a week. */
async function send(
  prompt: string,
  commit: string,
  positive: number,
  negative: number,
  days = commit === before ? 7 : 1,
) {
  const at = days > 1 ? '2026-11-01T10:00:00Z' : '2026-11-14T10:00:00Z'
  const sent = onDays(days, signals(positive, negative, { commit, at }))
  await addSignals({ services: { db } } as TestService, prompt, sent)
  await db.sql`
    insert into signal_usage as u (organisation_id, month, used)
    select p.organisation_id, '2026-11-01', ${sent.length}::integer from prompts p where p.public_id = ${prompt}
    on conflict (organisation_id, month, block) do update set used = u.used + excluded.used`
}

/** Sends signals by which the second change is better. */
async function decide(prompt: string): Promise<void> {
  await send(prompt, before, 40, 60)
  await send(prompt, after, 90, 10)
}

/** The database, with a call before each statement. */
function intercept(before: (text: string, values: unknown[]) => void): Db {
  const on = (sql: Sql): Sql =>
    Object.assign(async (text: TemplateStringsArray, ...values: unknown[]) => {
      before(text.join('?'), values)
      return sql(text, ...values)
    }, sql) as Sql
  return { ...db, sql: on(db.sql), transaction: (work, ...rest) => db.transaction((sql) => work(on(sql)), ...rest) }
}

const createOrg = async () => (await insertTenant(db, clock)).org

/** An organisation with an endpoint, and a prompt that was checked before its first signals. */
async function createWatched(): Promise<{ org: string; prompt: string }> {
  const org = await createOrg()
  await insertEndpoints(db, org)
  const prompt = await addPrompt(org)
  await check()
  return { org, prompt }
}

/** The prompt and verdict of each event of these organisations, oldest first. */
async function readAnnounced(...orgs: string[]): Promise<string[]> {
  const rows = await db.sql<{ announced: string }>`
    select concat_ws(' ', v.data -> 'prompt' ->> 'name', v.data ->> 'verdict') as announced
    from webhook_events v
    join organisations o on o.id = v.organisation_id
    where o.public_id = any(${orgs}::text[]) and v.type = 'impact.decided'
    order by v.id`
  return rows.map(({ announced }) => announced)
}

test('a decided verdict is announced once, a flip too, and one that becomes undecided is not', async () => {
  const { org, prompt } = await createWatched()
  await send(prompt, before, 40, 60)
  await send(prompt, after, 5, 5)
  await check()
  expect(await readAnnounced(org)).toEqual([])
  await send(prompt, after, 90, 10)
  await check()
  expect(await readAnnounced(org)).toEqual(['greeting better'])
  const [event] = await db.sql<{ data: object }>`
    select v.data from webhook_events v join organisations o on o.id = v.organisation_id where o.public_id = ${org}`
  expect(event?.data).toMatchObject({
    prompt: { id: prompt, name: 'greeting' },
    change: { commit_sha: after, pr_number: 7 },
    verdict: 'better',
    sentence: 'Better since PR #7: 40.0 → 86.4 % positive (+46.4 points, between +23.1 and +69.6).',
  })
  await send(prompt, after, 0, 100)
  await check()
  await send(prompt, after, 200, 0)
  await check()
  expect(await readAnnounced(org)).toEqual(['greeting better'])
  await send(prompt, after, 0, 3_000)
  await check()
  await send(prompt, after, 3_000, 0)
  await check()
  expect(await readAnnounced(org)).toEqual(['greeting better', 'greeting worse'])
})

/** What a pipeline, a sync and GitHub report of one merge. The pipeline deploys later, with a hash of any length. */
const reports = {
  short: (prompt: Prompt) => recordEntry(db, clock, prompt, deployed(after.slice(0, 8), '2026-11-15T11:10:00Z')),
  pipeline: (prompt: Prompt) => recordEntry(db, clock, prompt, deployed(after, '2026-11-15T11:10:00Z')),
  sync: (prompt: Prompt) => report(prompt, 'git', merged(after, '2026-11-15T11:00:00Z', 7)),
  push: (prompt: Prompt) => report(prompt, 'github', deployed(after, '2026-11-15T11:00:01Z')),
  merge: (prompt: Prompt) => report(prompt, 'github', merged(after, '2026-11-15T11:00:00Z', 7)),
}

const report = ({ id, organisationId }: Prompt, source: 'git' | 'github', given: object) => {
  const reported = parseReported({ prompt: id, entry: given as NewHistoryEntry, covers: [] }, source, clock)
  return db.transaction((sql) => recordReported(sql, clock, organisationId, [reported]))
}

const sources: (keyof typeof reports)[][] = [
  ['pipeline', 'sync'],
  ['short', 'push', 'merge'],
  ['pipeline', 'push', 'merge'],
]
const orders = sources.flatMap((some) => permutationsOf(some)).map((order) => ({ order }))

test.each(orders)('a change and its verdict are announced once in the order $order', async ({ order }) => {
  const org = await createOrg()
  const { id } = await createPrompt(db, clock, await requireOrganisation(db, org), { name: 'greeting' })
  const prompt = await requirePrompt(db.sql, id)
  await recordEntry(db, clock, prompt, deployed(before, '2026-09-01T09:00:00Z'))
  await insertEndpoints(db, org)
  await check()
  for (const name of order) {
    await reports[name](prompt)
    await decide(id)
    await check()
  }
  const events = await db.sql`
    select v.type from webhook_events v join organisations o on o.id = v.organisation_id
    where o.public_id = ${org} order by v.id`
  expect(events).toEqual([{ type: 'change.live' }, { type: 'impact.decided' }])
})

test.each([
  ['another live branch', (prompt: Prompt) => changePrompt(db, clock, prompt, { live_branch: 'main' })],
  ['a removed entry', async (prompt: Prompt) => removeEntry(db, clock, prompt, await newestEntry(prompt), operator)],
])('%s announces no verdict, also with later signals; what these decide is announced', async (_, correct) => {
  const { org, prompt: id } = await createWatched()
  const prompt = await requirePrompt(db.sql, id)
  await decide(id)
  const other = { ...deployed('c'.repeat(40), '2026-11-14T09:00:01Z'), branch_name: 'next' }
  await recordEntry(db, clock, prompt, other)
  await correct(prompt)
  for (const positive of [0, 1]) {
    await send(id, after, positive, 0)
    await check()
  }
  expect(await readAnnounced(org)).toEqual([])
  await send(id, after, 0, 3_000)
  await check()
  expect(await readAnnounced(org)).toEqual(['greeting worse'])
})

type Chosen = { enabled?: boolean; events?: ('change.live' | 'impact.decided')[]; prompts?: string[] | null }

test.each<[string, Chosen, Chosen]>([
  ['enabled', { enabled: false }, { enabled: true }],
  ['changed to other events', { events: ['change.live'] }, { events: ['impact.decided'] }],
  ['changed to other prompts', { prompts: ['other'] }, { prompts: null }],
])('an endpoint that is %s is not sent the verdicts from before, but those after', async (_, without, withVerdicts) => {
  const { org, prompt: id } = await createWatched()
  const other = await addPrompt(org, 'other')
  const [row] = await db.sql<{ endpoint: string }>`
    select e.public_id as endpoint from webhook_endpoints e join organisations o on o.id = e.organisation_id
    where o.public_id = ${org}`
  const change = (given: Chosen) => changeEndpoint(db, clock, row?.endpoint as string, given, undefined, operator)
  await change(without.prompts ? { prompts: [other] } : without)
  await check()
  await decide(id)
  await check()
  await change(withVerdicts)
  for (const positive of [0, 1]) {
    await send(id, after, positive, 0)
    await check()
  }
  expect(await readAnnounced(org)).toEqual([])
  await send(id, after, 0, 3_000)
  await check()
  expect(await readAnnounced(org)).toEqual(['greeting worse'])
})

const newestEntry = async ({ id }: Prompt): Promise<number> => {
  const [row] = await db.sql<{ id: number }>`select max(id) as id from history_entries where prompt_id = ${id}`
  return row?.id as number
}

test('a commit can have any name', async () => {
  const { org, prompt } = await createWatched()
  const commit = '123456😀 of November'
  await recordEntry(db, clock, await requirePrompt(db.sql, prompt), deployed(commit, '2026-11-14T09:30:00Z'))
  await send(prompt, after, 40, 60, 7)
  await send(prompt, commit, 90, 10)
  await check()
  expect(await readAnnounced(org)).toEqual(['greeting better'])
})

test('only prompts that an endpoint wants are checked, and only with new signals', async () => {
  const [org, other, unwatched] = [await createOrg(), await createOrg(), await createOrg()]
  const [wanted, unwanted] = [await addPrompt(org, 'wanted'), await addPrompt(org, 'unwanted')]
  const archived = await addPrompt(org, 'archived')
  await db.sql`update prompts set archived = true where public_id = ${archived}`
  await insertEndpoints(db, org, { prompts: [wanted, archived] })
  await insertEndpoints(db, other, { events: ['change.live', 'usage.threshold'] })
  const prompts = [wanted, unwanted, archived, await addPrompt(other), await addPrompt(unwatched)]
  await check()
  for (const prompt of prompts) await decide(prompt)
  await check()
  await db.sql`delete from decided_verdicts`
  await check()
  expect(await db.sql`select from decided_verdicts`).toEqual([])
  expect(await Promise.all([org, other, unwatched].map((one) => readAnnounced(one)))).toEqual([
    ['wanted better'],
    [],
    [],
  ])
  const checked = await db.sql<{ prompt: string }>`
    select p.public_id as prompt from checked_prompts c join prompts p on p.id = c.prompt_id
    where p.public_id = any(${prompts}::text[])`
  expect(checked).toEqual([{ prompt: wanted }])
})

test('the first check of a prompt announces nothing; a few signals that decide after it do', async () => {
  const org = await createOrg()
  const [old, undecided] = [await addPrompt(org, 'old'), await addPrompt(org, 'undecided')]
  for (const prompt of [old, undecided]) await send(prompt, before, 400, 600)
  await send(old, after, 900, 100)
  await send(undecided, after, 470, 530)
  await insertEndpoints(db, org, { prompts: [undecided] })
  const checkAgain = createCheck()
  await checkAgain()
  await db.sql`
    update webhook_endpoints set prompts = null
    where organisation_id = (select id from organisations where public_id = ${org})`
  // Without a further signal: an endpoint has changed.
  await checkAgain()
  expect(await readAnnounced(org)).toEqual([])
  await send(old, after, 10, 0)
  await send(undecided, after, 100, 0)
  await checkAgain()
  expect(await readAnnounced(org)).toEqual(['undecided better'])
  await send(old, after, 0, 3_000)
  await checkAgain()
  expect(await readAnnounced(org)).toEqual(['undecided better', 'old worse'])
})

test('organisations take turns, and a prompt that cannot be read stops no other', async () => {
  const [large, small] = [await createOrg(), await createOrg()]
  for (const org of [large, small]) await insertEndpoints(db, org)
  const prompts = await Promise.all(Array.from({ length: 30 }, (_, number) => addPrompt(large, `p${number}`)))
  prompts.push(await addPrompt(small, 'only'))
  await check()
  for (const prompt of prompts) await decide(prompt)
  const broken = await requirePrompt(db.sql, prompts[3] as string)
  const catchUpEach = async (_: number, ids: number[]) => {
    if (ids.includes(broken.id)) throw new Error('broken')
  }
  await createCheck(db, { ...createSignalRollup(db), catchUpEach })()
  expect(failures.splice(0)).toEqual([new Error('broken')])
  const announced = await readAnnounced(large, small)
  expect(announced.length).toBe(30)
  // After the first prompts of the other organisation, and before its last.
  const [fewest, most] = db.isEmbedded ? [1, 5] : [20, 25]
  expect(announced.indexOf('only better')).toBeWithin(fewest, most + 1)
  await check()
  expect((await readAnnounced(large)).length).toBe(30)
})

test('prompts are checked together, and signals are counted where changes can be compared', async () => {
  const org = await createOrg()
  await insertEndpoints(db, org)
  const prompts = await Promise.all(Array.from({ length: 20 }, (_, number) => addPrompt(org, `p${number}`)))
  await db.sql`
    delete from history_entries
    where commit_sha = ${before} and prompt_id in (select id from prompts where public_id = any(${prompts.slice(5)}::text[]))`
  const texts: string[] = []
  const counted: object[] = []
  const noted = intercept((text, values) => {
    texts.push(text)
    if (text.includes('signal_commit_counts')) counted.push(...JSON.parse(String(values[0])))
  })
  await createCheck(noted)()
  expect(counted).toHaveLength(5)
  // Changes are read only in steps in which some can be compared.
  const [steps, compared] = db.isEmbedded ? [5, 2] : [1, 1]
  const read = texts.filter((text) => /history_changes|into checked_prompts/.test(text))
  expect(read).toHaveLength(2 * steps + compared)
})

test('one replica checks at a time, and each verdict is announced once by several', async () => {
  const { org, prompt } = await createWatched()
  await decide(prompt)
  if (!db.isEmbedded) {
    await db.transaction(async (sql) => {
      await sql`select pg_advisory_xact_lock(5168, 1)`
      await check()
    })
    expect(await readAnnounced(org)).toEqual([])
  }
  await Promise.all([check(), check(), check()])
  await check()
  expect(await readAnnounced(org)).toEqual(['greeting better'])
})

/** Sends 40 signals on each of these days, to a prompt with one change. */
async function sendDaily(prompt: string, from: string, days: number, positive: number): Promise<void> {
  const sent = signals(positive * days, (40 - positive) * days, { at: `${from}T10:00:00Z` })
  await addSignals({ services: { db } } as TestService, prompt, onDays(days, sent))
}

/** A prompt that was checked before its rate fell, from the 8th to the 14th. */
async function createFallen(): Promise<{ org: string; prompt: Prompt }> {
  const org = await createOrg()
  await insertEndpoints(db, org, { events: ['rate.changed'] })
  const { id } = await createPrompt(db, clock, await requireOrganisation(db, org), { name: 'greeting' })
  const prompt = await requirePrompt(db.sql, id)
  await recordEntry(db, clock, prompt, deployed(before, '2026-09-01T09:00:00Z'))
  await sendDaily(id, '2026-10-04', 35, 30)
  clock.set('2026-11-08T00:30:00Z')
  await check()
  await sendDaily(id, '2026-11-08', 8, 22)
  clock.set('2026-11-15T12:00:00Z')
  return { org, prompt }
}

const readRateChanges = (org: string) =>
  db.sql<{ at: Date; data: object }>`
    select v.created_at as at, v.data from webhook_events v join organisations o on o.id = v.organisation_id
    where o.public_id = ${org} and v.type = 'rate.changed' order by v.id`

test('a rate that changed without a change is announced once in a week, by several replicas too', async () => {
  const { org, prompt } = await createFallen()
  await Promise.all([check(), check(), check()])
  const [event, ...more] = await readRateChanges(org)
  expect(more).toEqual([])
  expect(event?.data).toMatchObject({
    prompt: { id: prompt.publicId, name: 'greeting' },
    change: { commit_sha: before },
    ...{ from: '2026-11-08', until: '2026-11-14' },
    before: { value: 0.75 },
    after: { value: 0.55 },
    difference: { value: -0.2 },
    sentence: expect.stringContaining(
      'Changed, but not in git: 75.0 → 55.0 % positive from 2026-11-08 to 2026-11-14 (',
    ),
  })
  // The rate falls further, so that there is something to announce on every day.
  for (let day = 16; day <= 22; day += 1) {
    await sendDaily(prompt.publicId, `2026-11-${day}`, 1, 4)
    clock.set(`2026-11-${day}T12:00:00Z`)
    await check()
  }
  const times = (await readRateChanges(org)).map(({ at }) => at.toISOString())
  expect(times).toEqual(['2026-11-15T12:00:00.000Z', '2026-11-22T12:00:00.000Z'])
})

test.each([
  ['an archived prompt', (prompt: Prompt) => changePrompt(db, clock, prompt, { archived: true })],
  ['a correction', (prompt: Prompt) => changePrompt(db, clock, prompt, { live_branch: 'main' })],
])('%s announces no changed rate', async (_, change) => {
  const { org, prompt } = await createFallen()
  await change(prompt)
  for (const day of [15, 16]) {
    clock.set(`2026-11-${day}T12:00:00Z`)
    await sendDaily(prompt.publicId, `2026-11-${day}`, 1, 22)
    await check()
  }
  clock.set('2026-11-15T12:00:00Z')
  expect(await readRateChanges(org)).toEqual([])
})

const errors = {
  'a lost connection': Object.assign(new Error(), { code: 'CONNECTION_CLOSED' }),
  'a timeout': Object.assign(new Error(), { name: 'PostgresError', code: '57014' }),
  'a deadlock': Object.assign(new Error(), { name: 'PostgresError', code: '40P01' }),
  'a late answer': new DeadlineError(),
  'a fault': new Error('broken'),
}
test.each([
  ['a lost connection', 'from signals s'],
  ['a late answer', 'signal_watermarks'],
  ['a timeout', 'signal_commit_counts'],
  ['a deadlock', 'insert into decided_verdicts'],
  ['a lost connection', 'insert into webhook_events'],
  ['a fault', 'insert into checked_prompts'],
] as const)(
  'after %s at %s the next check announces the verdict; without new signals it is one statement',
  async (name, at) => {
    const { org, prompt } = await createWatched()
    const texts: string[] = []
    let isBroken = false
    const replica = createCheck(
      intercept((text) => {
        texts.push(text)
        if (isBroken && text.includes(at)) throw errors[name]
      }),
    )
    await replica()
    texts.length = 0
    await replica()
    expect(texts).toHaveLength(1)
    await decide(prompt)
    isBroken = true
    await replica().catch((error) => failures.push(error))
    expect(failures.splice(0)).toEqual([errors[name]])
    expect(await readAnnounced(org)).toEqual([])
    isBroken = false
    await replica()
    expect(await readAnnounced(org)).toEqual(['greeting better'])
  },
)
