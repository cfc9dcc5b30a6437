import { join } from 'node:path'
import { median } from '../compare.ts'
import type { Context } from '../context.ts'
import { createTenants, promptOf, unreachableLimit } from '../fixtures.ts'
import { writeHistory } from '../histories.ts'
import { runProgram } from '../processes.ts'

const entries = 1_000_000
const pageSize = 25
/** Pages read of each depth, alternating, each requested once, so that none comes from a cache. */
const pagesEach = 200

/** Entries written one by one, alternating: one that comes last, and one that is dated before all others. */
const writesEach = 50

/** A prompt with a million entries: how fast they come in, and what a page or a further entry costs at any depth. */
export async function measureDeepHistory(context: Context): Promise<void> {
  const { program, settings, cwd, signal } = context.operator
  const [request] = await createTenants(context.database, {
    organisations: 1,
    promptsEach: 1,
    monthlyLimit: unreachableLimit,
  })
  if (!request) throw new Error('No tenant was made')
  const { path, key } = request
  const prompt = promptOf(request)
  const file = await writeHistory(context.folder, [prompt], entries)
  const { database, report } = context

  const startedAt = performance.now()
  const child = Bun.spawn([program, 'history', 'import', file], {
    cwd,
    env: settings,
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  if ((await child.exited) !== 0) throw new Error('history import failed')
  const importSeconds = (performance.now() - startedAt) / 1000
  const importMb = (child.resourceUsage()?.maxRSS ?? 0) / 1024 / 1024

  // The same rows, by Postgres' own means, into a table with the same indexes.
  await database.sql.script('create table history_copy (like history_entries including all)')
  const rows = join(context.folder, 'rows.csv')
  const psql = (command: string) =>
    runProgram(['psql', '--quiet', context.databaseUrl, '--command', command], { cwd, signal })
  await psql(
    `\\copy (select h.* from history_entries h join prompts p on p.id = h.prompt_id where p.public_id = '${prompt}') to '${rows}' csv`,
  )
  await database.sql.script('checkpoint')
  const copyStartedAt = performance.now()
  await psql(`\\copy history_copy from '${rows}' csv`)
  const copySeconds = (performance.now() - copyStartedAt) / 1000
  await database.sql.script('drop table history_copy')
  await database.sql.script('vacuum analyze history_entries')

  const server = await context.serve()
  const historyPath = path.replace('/signals', '/history')
  const last = entries / pageSize
  const readPage = async (page: number): Promise<number> => {
    const askedAt = performance.now()
    const answer = await fetch(`${server.url}${historyPath}?page=${page}`, {
      headers: { authorization: `Bearer ${key}` },
    })
    const { data } = (await answer.json()) as { data?: unknown[] }
    if (data?.length !== pageSize) report.problems.push(`page ${page} has ${data?.length} entries`)
    return performance.now() - askedAt
  }
  // These pages are for the code to be compiled, and for Postgres to have read its indexes.
  for (let page = 0; page < pagesEach; page += 1) await readPage(last / 4 + page)
  const times = { first: [] as number[], middle: [] as number[], last: [] as number[] }
  for (let page = 0; page < pagesEach; page += 1) {
    times.first.push(await readPage(1 + page))
    times.middle.push(await readPage(last / 2 + page))
    times.last.push(await readPage(last - page))
  }
  const writeEntry = async (created_at?: string): Promise<number> => {
    const user = { name: 'Ada Example', email: 'ada@example.com' }
    const commit_sha = crypto.randomUUID().replaceAll('-', '')
    const sentAt = performance.now()
    const { status } = await fetch(`${server.url}${historyPath}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ action: 'deployed', user, commit_sha, branch_name: 'main', created_at }),
    })
    if (status !== 201) report.problems.push(`an entry dated ${created_at ?? 'now'} was answered with ${status}`)
    return performance.now() - sentAt
  }
  const writes = { last: [] as number[], late: [] as number[] }
  for (let index = 0; index < writesEach; index += 1) {
    writes.last.push(await writeEntry())
    writes.late.push(await writeEntry(new Date(Date.UTC(2019, 0, 1) - index).toISOString()))
  }
  await server.stop()

  const addRow = (name: string, taken: number[]) => {
    const sorted = taken.toSorted((a, b) => a - b)
    report.rows.push({
      name,
      requestsPerSecond: 1000 / (taken.reduce((sum, ms) => sum + ms, 0) / taken.length),
      p50Ms: median(taken),
      p99Ms: sorted[Math.floor(sorted.length * 0.99)] as number,
      errors: 0,
      residentMb: null,
    })
  }
  for (const [where, taken] of Object.entries(times)) {
    addRow(`${where} pages of 1,000,000 entries, uncached, one by one`, taken)
  }
  addRow('POST history after 1,000,000 entries, one by one', writes.last)
  addRow('POST history dated before 1,000,000 entries, one by one', writes.late)
  report.targets.push(
    {
      name: 'last page of 1,000,000 entries ÷ first page',
      value: median(times.last) / median(times.first),
      atMost: 1.2,
    },
    { name: 'p50 of an entry dated before 1,000,000 others, ms', value: median(writes.late), below: 500 },
    { name: 'history import ÷ \\copy of the same rows', value: copySeconds / importSeconds, atLeast: 0.3 },
    { name: 'memory of history import, MB', value: importMb, below: 300 },
  )
}
