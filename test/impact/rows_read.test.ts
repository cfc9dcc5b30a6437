// What a page of changes reads depends on the changes of the prompt, not on what callers have piled up.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readRows } from '../rows_read.ts'
import { startService, type TestService } from '../service.ts'
import { countSignals, deployed } from './history.ts'

let service: TestService

beforeAll(async () => {
  service = await startService()
})

afterAll(() => service.close())

const changes = 30
const madeUp = 1_500
const hour = 3_600_000
const start = Date.UTC(2026, 9, 1)
/** Commits as git has them; the first characters are spread evenly. */
const commitOf = (n: number): string => new Bun.CryptoHasher('sha1').update(`change ${n}`).digest('hex')

/** Adds one signal for each text that the expression makes of n, a minute after the other, and counts them. */
async function addNamed(prompt: string, number: number, text: string): Promise<void> {
  await service.services.db.sql.dynamic(
    `insert into signals (organisation_id, prompt_id, value, metadata, created_at)
    select p.organisation_id, p.id, 'positive', jsonb_build_object('commit_sha', ${text}),
      to_timestamp(${start / 1000} + n * 60 % ${(changes * hour) / 1000})
    from prompts p, generate_series(1, ${number}) n
    where p.public_id = $1`,
    [prompt],
  )
  await countSignals(service, prompt)
}

async function rowsReadBy(work: () => Promise<unknown>): Promise<Map<string, number>> {
  const { db } = service.services
  const before = await readRows(db, 'index')
  await work()
  const after = await readRows(db, 'index')
  return new Map([...after].map(([name, number]) => [name, number - (before.get(name) ?? 0)]))
}

test('texts that name no change are not read, however many callers have made up', async () => {
  const { prompt, key } = await service.createTenant()
  await service.addHistory(
    prompt,
    Array.from({ length: changes }, (_, n) => deployed(commitOf(n), new Date(start + n * hour).toISOString())),
  )
  const read = async (path: string) => {
    const { status, body } = await service.call('GET', path, { key })
    expect(status).toBe(200)
    return body.data
  }
  const page = `/api/v1/prompts/${prompt}/impact?limit=100`
  const total = async () =>
    (await read(page)).reduce((sum: number, { signals }: { signals: { total: number } }) => sum + signals.total, 0)

  await addNamed(prompt, madeUp, `encode(sha256(n::text::bytea), 'hex')`)
  // These lie between the first characters of a commit and the commit itself.
  await addNamed(prompt, madeUp, `'${commitOf(0).slice(0, 9)}' || chr(33) || n`)
  await addNamed(prompt, 1, `'${commitOf(0)}'`)
  for (const path of [page, '/api/v1/impact']) {
    const rows = await rowsReadBy(() => read(path))
    expect(rows.get('signal_commit_counts')).toBeWithin(1, 10 * changes)
    expect(rows.get('history_entries')).toBeWithin(1, 20 * changes)
  }
  expect(await total()).toBe(2 * madeUp + 1)
})
