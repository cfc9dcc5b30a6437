import { join } from 'node:path'
import { createTenants, unreachableLimit } from '../fixtures.ts'
import type { Ground } from '../ground.ts'
import { writeHistory } from '../histories.ts'
import { runProgram } from '../processes.ts'

const entries = 1_000_000
const pageSize = 25
/** So many pages beside each other, each asked for once, so that none comes from a cache. */
const pagesEach = 200

/** A prompt with a million entries: how fast they come in, and what a page costs at any depth. */
export async function measureDeepHistory(ground: Ground): Promise<void> {
  const { program, settings, cwd, signal } = ground.operator
  const [tenant] = await createTenants(ground.operator, {
    organisations: 1,
    promptsEach: 1,
    monthlyLimit: unreachableLimit,
  })
  const { path = '', key = '' } = tenant ?? {}
  const file = await writeHistory(ground.folder, [path.split('/')[4] as string], entries)
  const { database, report } = ground

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
  const rows = join(ground.folder, 'rows.csv')
  const psql = (command: string) =>
    runProgram(['psql', '--quiet', ground.databaseUrl, '--command', command], { cwd, signal })
  await psql(
    `\\copy (select h.* from history_entries h join prompts p on p.id = h.prompt_id where p.public_id = '${path.split('/')[4]}') to '${rows}' csv`,
  )
  await database.sql.script('checkpoint')
  const copyStartedAt = performance.now()
  await psql(`\\copy history_copy from '${rows}' csv`)
  const copySeconds = (performance.now() - copyStartedAt) / 1000
  await database.sql.script('drop table history_copy')
  await database.sql.script('vacuum analyze history_entries')

  const server = await ground.serve()
  const historyPath = path.replace('/signals', '/history')
  const last = entries / pageSize
  const time = async (name: string, first: number) => {
    const times: number[] = []
    for (let page = first; page < first + pagesEach; page += 1) {
      const askedAt = performance.now()
      const answer = await fetch(`${server.url}${historyPath}?page=${page}`, {
        headers: { authorization: `Bearer ${key}` },
      })
      const { data } = (await answer.json()) as { data: unknown[] }
      times.push(performance.now() - askedAt)
      if (data.length !== pageSize) report.problems.push(`${name}: page ${page} has ${data.length} entries`)
    }
    times.sort((a, b) => a - b)
    const at = (share: number) => times[Math.floor(times.length * share)] as number
    const perSecond = (1000 * times.length) / times.reduce((sum, one) => sum + one, 0)
    report.rows.push({
      name,
      requestsPerSecond: perSecond,
      p50Ms: at(0.5),
      p99Ms: at(0.99),
      errors: 0,
      residentMb: null,
    })
    return at(0.5)
  }
  // Once for the code to be compiled, and for Postgres to have read its indexes.
  await time('page near the middle of 1,000,000 entries, to warm up', last / 2 - pagesEach)
  const firstMs = await time('first pages of 1,000,000 entries, uncached, one by one', 1)
  await time('middle pages of 1,000,000 entries, uncached, one by one', last / 2)
  const lastMs = await time('last pages of 1,000,000 entries, uncached, one by one', last - pagesEach + 1)
  await server.stop()

  report.targets.push(
    { name: 'last page of 1,000,000 entries ÷ first page', value: lastMs / firstMs, atMost: 1.2 },
    { name: 'history import ÷ \\copy of the same rows', value: copySeconds / importSeconds, atLeast: 0.3 },
    { name: 'memory of history import, MB', value: importMb, below: 300 },
  )
}
