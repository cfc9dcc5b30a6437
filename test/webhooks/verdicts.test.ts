import { expect, test } from 'bun:test'
import type { Db, Sql } from '../../src/db/client.ts'
import { recordEntry } from '../../src/history/record.ts'
import { DeadlineError } from '../../src/lib/deadline.ts'
import { requireOrganisation } from '../../src/orgs/manage.ts'
import { requirePrompt } from '../../src/prompts/find.ts'
import { createPrompt } from '../../src/prompts/manage.ts'
import { createSignalRollup } from '../../src/stats/rollup.ts'
import { changeEndpoint, listEndpoints } from '../../src/webhooks/endpoints.ts'
import { createVerdictWatch } from '../../src/webhooks/verdicts.ts'
import { addSignals, deployed, merged, rollUp, type Sent } from '../impact/history.ts'
import { createTestClock, type TestService } from '../service.ts'
import { insertTenant } from '../tenant.ts'
import { useOpenDatabase } from '../use.ts'
import { insertEndpoints } from './emit.ts'

const db = useOpenDatabase()
const clock = createTestClock()
clock.set('2026-11-15T12:00:00Z')

const failures: unknown[] = []
/** Takes small steps on either engine. */
const createWatch = (rollup = createSignalRollup(db), on: Db = { ...db, isEmbedded: true }) =>
  createVerdictWatch({ db: on, clock, rollup }, { isStopping: () => false, onFailure: (error) => failures.push(error) })
const watch = (...options: Parameters<typeof createWatch>) => createWatch(...options).look

/** Looks as a replica does that takes over from the one before. */
async function look(rollup?: ReturnType<typeof createSignalRollup>): Promise<void> {
  await db.sql`delete from verdict_lease`
  await watch(rollup)()
}

const [before, after] = ['a'.repeat(40), 'b'.repeat(40)]

/** A prompt with two changes. */
async function addPrompt(org: string, name = 'greeting', live = '2026-11-14T09:00:00Z'): Promise<string> {
  const { id } = await createPrompt(db, clock, { org, name, id: null })
  const prompt = await requirePrompt(db.sql, id)
  await recordEntry(db, clock, prompt, deployed(before, '2026-09-01T09:00:00Z'))
  await recordEntry(db, clock, prompt, merged(after, live, 7))
  return id
}

async function send(prompt: string, commit: string, positive: number, negative: number): Promise<void> {
  const signal = (value: Sent['value']) => ({ value, commit, at: '2026-11-14T10:00:00Z' })
  const signals = [...Array(positive).fill(signal('positive')), ...Array(negative).fill(signal('negative'))]
  await addSignals({ services: { db } } as TestService, prompt, signals)
  await db.sql`
    insert into signal_usage as u (organisation_id, month, used)
    select p.organisation_id, '2026-11-01', ${signals.length}::integer from prompts p where p.public_id = ${prompt}
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

/** The prompt and verdict of each event of these organisations, oldest first. */
async function readTold(...orgs: string[]): Promise<string[]> {
  const rows = await db.sql<{ told: string }>`
    select concat_ws(' ', v.data -> 'prompt' ->> 'name', v.data ->> 'verdict') as told
    from webhook_events v
    join organisations o on o.id = v.organisation_id
    where o.public_id = any(${orgs}::text[]) and v.type = 'impact.decided'
    order by v.id`
  return rows.map(({ told }) => told)
}

test('a decided verdict is told once, a flip is told, and one that becomes undecided is not', async () => {
  const org = await createOrg()
  await insertEndpoints(db, org)
  const prompt = await addPrompt(org)
  await send(prompt, before, 40, 60)
  await send(prompt, after, 5, 5)
  await look()
  expect(await readTold(org)).toEqual([])
  await send(prompt, after, 90, 10)
  await look()
  expect(await readTold(org)).toEqual(['greeting better'])
  const [event] = await db.sql<{ data: object }>`
    select v.data from webhook_events v join organisations o on o.id = v.organisation_id where o.public_id = ${org}`
  expect(event?.data).toMatchObject({
    prompt: { id: prompt, name: 'greeting' },
    change: { commit_sha: after, pr_number: 7 },
    verdict: 'better',
    sentence: 'Higher since PR #7: 40.0 → 86.4 % positive (+46.4 points, between +20.8 and +68.1).',
  })
  await send(prompt, after, 0, 100)
  await look()
  await send(prompt, after, 200, 0)
  await look()
  expect(await readTold(org)).toEqual(['greeting better'])
  await send(prompt, after, 0, 3_000)
  await look()
  await send(prompt, after, 3_000, 0)
  await look()
  expect(await readTold(org)).toEqual(['greeting better', 'greeting worse'])
})

test('a commit can have any name', async () => {
  const org = await createOrg()
  await insertEndpoints(db, org)
  const name = await addPrompt(org)
  const commit = '123456😀 of November'
  await recordEntry(db, clock, await requirePrompt(db.sql, name), deployed(commit, '2026-11-14T09:30:00Z'))
  await send(name, after, 40, 60)
  await send(name, commit, 90, 10)
  await look()
  expect(await readTold(org)).toEqual(['greeting better'])
})

test('only prompts with new signals are looked at, and only those that an endpoint wants', async () => {
  const [org, other, unwatched] = [await createOrg(), await createOrg(), await createOrg()]
  const [wanted, unwanted] = [await addPrompt(org, 'wanted'), await addPrompt(org, 'unwanted')]
  const archived = await addPrompt(org, 'archived')
  await db.sql`update prompts set archived = true where public_id = ${archived}`
  await insertEndpoints(db, org, { prompts: [wanted, archived] })
  await insertEndpoints(db, other, { events: ['change.live', 'usage.threshold'] })
  const prompts = [wanted, unwanted, archived, await addPrompt(other), await addPrompt(unwatched)]
  for (const prompt of prompts) await decide(prompt)
  await look()
  await db.sql`delete from decided_verdicts`
  await look()
  expect(await db.sql`select from decided_verdicts`).toEqual([])
  expect(await Promise.all([org, other, unwatched].map((one) => readTold(one)))).toEqual([['wanted better'], [], []])
  const looks = await db.sql<{ prompt: string }>`
    select p.public_id as prompt from verdict_looks l join prompts p on p.id = l.prompt_id
    where p.public_id = any(${prompts}::text[])`
  expect(looks).toEqual([{ prompt: wanted }])
})

test('an endpoint is not told of verdicts that were known before it was created', async () => {
  const org = await createOrg()
  const [old, flipped] = [await addPrompt(org, 'old'), await addPrompt(org, 'flipped')]
  for (const prompt of [old, flipped]) {
    await send(prompt, before, 400, 600)
    await send(prompt, after, 900, 100)
  }
  await insertEndpoints(db, org)
  const fresh = await addPrompt(org, 'fresh', '2026-10-01T09:00:00Z')
  await decide(fresh)
  // What comes between the endpoint and the first look does not make the old verdict news.
  await send(old, after, 10, 0)
  await look()
  expect(await readTold(org)).toEqual(['fresh better'])
  await send(old, after, 10, 0)
  await send(flipped, after, 0, 3_000)
  await look()
  expect(await readTold(org)).toEqual(['fresh better', 'flipped worse'])
  // The same for one that comes after another was removed, and for one that was disabled.
  await db.sql`
    delete from webhook_endpoints where organisation_id = (select id from organisations where public_id = ${org})`
  await send(fresh, after, 0, 3_000)
  await insertEndpoints(db, org)
  await send(fresh, after, 0, 10)
  await look()
  const { id } = await requireOrganisation(db, org)
  const [endpoint] = (await listEndpoints(db, id, { limit: 1, cursor: null })).data
  const enable = (enabled: boolean) => changeEndpoint(db, clock, endpoint?.id as string, { enabled }, undefined)
  await enable(false)
  await send(old, after, 0, 3_000)
  await enable(true)
  await look()
  expect(await readTold(org)).toEqual(['fresh better', 'flipped worse'])
})

test('an endpoint is told of a verdict that a few signals decide after the first look', async () => {
  const org = await createOrg()
  const [first, second, other] = [await addPrompt(org, 'first'), await addPrompt(org, 'second'), await addPrompt(org)]
  for (const prompt of [first, second, other]) {
    await send(prompt, before, 400, 600)
    await send(prompt, after, 470, 530)
  }
  await insertEndpoints(db, org)
  await look()
  await send(first, after, 100, 0)
  await look()
  expect(await readTold(org)).toEqual(['first better'])
  // The same for one that takes the place of another.
  await send(other, after, 1, 0)
  await db.sql`
    delete from webhook_endpoints where organisation_id = (select id from organisations where public_id = ${org})`
  await insertEndpoints(db, org)
  await send(second, after, 100, 0)
  await look()
  expect(await readTold(org)).toEqual(['first better', 'second better'])
})

test('a verdict is news if a tenth of its signals came since the endpoint was created, however many they are', async () => {
  const org = await createOrg()
  const prompt = await addPrompt(org)
  await send(prompt, before, 1, 0)
  await insertEndpoints(db, org)
  await send(prompt, before, 4_000, 6_000)
  await send(prompt, after, 9_000, 1_000)
  await rollUp({ services: { db } } as TestService, prompt)
  // The change has 150,000 signals, 20,000 of which are counted as new.
  await db.sql`update signal_counts set positive = positive * 15, negative = negative * 15`
  await db.sql`update signal_commit_counts set positive = positive * 15, negative = negative * 15`
  await look()
  expect(await readTold(org)).toEqual(['greeting better'])
})

test('organisations take turns, and a prompt that cannot be read stops no other', async () => {
  const [large, small] = [await createOrg(), await createOrg()]
  const prompts: string[] = []
  for (const org of [large, small]) await insertEndpoints(db, org)
  for (let number = 0; number < 25; number += 1) prompts.push(await addPrompt(large, `p${number}`))
  prompts.push(await addPrompt(small, 'only'))
  for (const prompt of prompts) await decide(prompt)
  const broken = await requirePrompt(db.sql, prompts[3] as string)
  const rollup = createSignalRollup(db)
  const catchUpEach = async (_: number, ids: number[]) => {
    if (ids.includes(broken.id)) throw new Error('broken')
  }
  await look({ ...rollup, catchUpEach })
  expect(failures.splice(0)).toEqual([new Error('broken')])
  const told = await readTold(large, small)
  expect(told.length).toBe(25)
  // After the first ten prompts of the other organisation, one of which is broken.
  expect(told.indexOf('only better')).toBe(9)
  await look()
  expect((await readTold(large)).length).toBe(25)
})

test.each([
  [true, 2],
  [false, 1],
])(
  'a look takes 20 prompts in few steps, and counts signals where changes can be compared (embedded: %p)',
  async (isEmbedded, steps) => {
    const org = await createOrg()
    await insertEndpoints(db, org)
    const prompts = await Promise.all(Array.from({ length: 20 }, (_, number) => addPrompt(org, `p${number}`)))
    for (const prompt of prompts) await send(prompt, after, 1, 1)
    await db.sql`
    delete from history_entries
    where commit_sha = ${before} and prompt_id in (select id from prompts where public_id = any(${prompts.slice(5)}::text[]))`
    const texts: string[] = []
    const counted: object[] = []
    const noted = intercept((text, values) => {
      texts.push(text)
      if (text.includes('signal_commit_counts')) counted.push(...JSON.parse(String(values[0])))
    })
    await db.sql`delete from verdict_lease`
    await watch(createSignalRollup(db), { ...noted, isEmbedded })()
    expect(counted).toHaveLength(5)
    const ofStep = texts.filter((text) => /history_changes|verdict_looks as/.test(text))
    expect(ofStep).toHaveLength(steps * 4)
  },
)

test.each([
  ['ends', '-1 millisecond'],
  ['is too long, taken while the clock was ahead', '1 hour'],
])('one replica looks at a time, until its lease %s', async (_, endsIn) => {
  const org = await createOrg()
  await insertEndpoints(db, org)
  await look()
  const prompt = await addPrompt(org)
  await decide(prompt)
  const replica = watch()
  await replica()
  expect(await readTold(org)).toEqual([])
  await db.sql`update verdict_lease set ends_at = now() + ${endsIn}::text::interval`
  await Promise.all([replica(), watch()()])
  expect(await readTold(org)).toEqual(['greeting better'])
})

test('a replica that stops leaves its work to another immediately, but ends no lease of another', async () => {
  const org = await createOrg()
  await insertEndpoints(db, org)
  await db.sql`delete from verdict_lease`
  const [holder, other] = [createWatch(), createWatch()]
  await holder.look()
  const prompt = await addPrompt(org)
  await decide(prompt)
  await other.look()
  await other.stop()
  await watch()()
  expect(await readTold(org)).toEqual([])
  await holder.stop()
  await watch()()
  expect(await readTold(org)).toEqual(['greeting better'])
})

test('an endpoint that wants more prompts than before is told of them without further signals', async () => {
  const org = await createOrg()
  const [wanted, other] = [await addPrompt(org), await addPrompt(org, 'other')]
  await insertEndpoints(db, org, { prompts: [other] })
  await decide(wanted)
  await db.sql`delete from verdict_lease`
  const replica = watch()
  await replica()
  expect(await readTold(org)).toEqual([])
  await db.sql`
    update webhook_endpoints set prompts = null
    where organisation_id = (select id from organisations where public_id = ${org})`
  await replica()
  expect(await readTold(org)).toEqual(['greeting better'])
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
  ['a fault', 'insert into verdict_looks'],
] as const)(
  'after %s at %s the next look tells the verdict; without new signals it is one statement',
  async (name, at) => {
    const org = await createOrg()
    await insertEndpoints(db, org)
    const prompt = await addPrompt(org)
    await decide(prompt)
    await look()
    await db.sql`delete from verdict_lease`
    const texts: string[] = []
    let isBroken = false
    const replica = watch(
      createSignalRollup(db),
      intercept((text) => {
        texts.push(text)
        if (isBroken && text.includes(at)) throw errors[name]
      }),
    )
    await replica()
    texts.length = 0
    await replica()
    expect(texts).toHaveLength(1)
    await send(prompt, after, 0, 3_000)
    isBroken = true
    await replica().catch((error) => failures.push(error))
    expect(failures.splice(0)).toEqual([errors[name]])
    expect(await readTold(org)).toEqual(['greeting better'])
    isBroken = false
    await replica()
    expect(await readTold(org)).toEqual(['greeting better', 'greeting worse'])
  },
)
