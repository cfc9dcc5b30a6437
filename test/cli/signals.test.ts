import { beforeAll, expect, test } from 'bun:test'
import { openDb } from '../tenant.ts'
import { useDatabase } from '../use.ts'

const { operator, settings } = useDatabase()
let org: string
let prompt: string

const now = new Date()
const today = now.toISOString().slice(0, 10)
const tomorrow = new Date(now.getTime() + 86_400_000).toISOString().slice(0, 10)

beforeAll(async () => {
  ;({ id: org } = await operator.one('orgs', 'create', '--name', 'Acme', '--plan', 'team'))
  ;({ id: prompt } = await operator.one('prompts', 'create', '--org', org, '--name', 'greeting'))
  const db = await openDb(settings)
  await db.sql`
    insert into signals (id, organisation_id, prompt_id, value, metadata, created_at) overriding system value
    select s.id, p.organisation_id, p.id, s.value, s.metadata::jsonb, ${now}::timestamptz
    from prompts p, (values
      (1, 'positive', '{"order": 9007199254740993, "model": "gpt-5"}'), (2, 'negative', '{"model": "\u009b31mred"}'),
      (3, 'positive', null)
    ) s (id, value, metadata)
    where p.public_id = ${prompt}`
  await db.close()
})

test('signals list shows the newest first, and goes on by cursor', async () => {
  const text = await operator.plain('signals', 'list', '--prompt', prompt, '--limit', '2')
  const minute = now.toISOString().slice(0, 16).replace('T', ' ')
  const lines = text.trimEnd().split('\n')
  expect(lines.slice(0, 3)).toEqual([
    'id  value       created_at        metadata',
    ` 3  ▲ positive  ${minute}  -`,
    ` 2  ▼ negative  ${minute}  {"model": " 31mred"}`,
  ])
  const cursor = /^For older signals: --cursor (\S+)$/.exec(lines[3] as string)?.[1] as string
  expect(await operator.plain('signals', 'list', '--prompt', prompt, '--json', '--cursor', cursor)).toBe(
    `{"id":1,"value":"positive","metadata":{"model": "gpt-5", "order": 9007199254740993},"created_at":"${now.toISOString()}"}\n`,
  )
})

test('signals list takes the filters of the interface', async () => {
  const ids = async (...options: string[]) =>
    (await operator.json('signals', 'list', '--prompt', prompt, ...options)).map(({ id }) => id)
  expect(await ids('--value', 'positive')).toEqual([3, 1])
  expect(await ids('--metadata', 'model=gpt-5', '--metadata', 'order=9007199254740993')).toEqual([1])
  expect(await ids('--until', '2026-01-01')).toEqual([])
})

test('signals stats shows a bar for each interval, and a line of all', async () => {
  const text = await operator.plain('signals', 'stats', '--prompt', prompt, '--since', today, '--until', tomorrow)
  expect(text.trimEnd().split('\n')).toEqual([
    'day         positive  negative  total    rate',
    `${today}         2         1      3  66.7 %  ████████████████████`,
    '█  3 signals, 66.7 % positive',
  ])
  expect(await operator.json('signals', 'stats', '--prompt', prompt, '--since', today, '--until', tomorrow)).toEqual([
    { start: `${today}T00:00:00.000Z`, positive: 2, negative: 1, total: 3, rate: 0.6667 },
  ])
})

test('signals stats splits by a field of the metadata', async () => {
  const split = ['signals', 'stats', '--prompt', prompt, '--by', 'metadata.model']
  expect((await operator.plain(...split)).trimEnd().split('\n')).toEqual([
    'metadata.model  positive  negative  total     rate',
    'gpt-5                  1         0      1  100.0 %  ████████████████████',
    ' 31mred                0         1      1    0.0 %  ████████████████████',
    'not set                1         0      1  100.0 %  ████████████████████',
    'All 3 signals.',
  ])
  expect(await operator.one(...split)).toMatchObject({
    complete: true,
    values: [{ value: 'gpt-5' }, { value: '\u009b31mred', positive: 0, negative: 1, total: 1, rate: 0 }],
    none: { positive: 1, negative: 0, total: 1, rate: 1 },
  })
})

test('usage shows the month by day and by prompt', async () => {
  const usage = await operator.one('usage', '--org', org)
  expect(usage).toMatchObject({ plan: 'team', limit: 10_000, prompts: [{ prompt, total: 3 }] })
  const lines = (await operator.plain('usage', '--org', org)).trimEnd().split('\n')
  expect(lines.slice(0, 3)).toEqual([
    'plan       team',
    `month      ${today.slice(0, 7)}`,
    'used       0 of 10,000, 0.0 %  ',
  ])
  expect(lines.at(-3)).toBe('')
  expect(lines.at(-1)).toBe(`greeting  ${prompt}        3  ████████████████████`)
  expect(lines[5]).toBe(`days       ${'·'.repeat(now.getUTCDate() - 1)}█`)
})
