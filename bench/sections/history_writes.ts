import { compare } from '../compare.ts'
import type { Context } from '../context.ts'
import { createTenants, unreachableLimit } from '../fixtures.ts'
import { type Request, unique } from '../load.ts'
import { measure } from '../measure.ts'
import type { Round } from '../plan.ts'

/** New entries of ten prompts, one per organisation. */
export async function measureHistoryWrites(context: Context): Promise<void> {
  const shape = { organisations: 10, promptsEach: 1, monthlyLimit: unreachableLimit }
  const requests = (await createTenants(context.database, shape)).map(toEntry)
  const server = await context.serve()
  const write = (connections: number) => (round: Round) => {
    const name = `POST history, ${connections} connections`
    return measure(context, { name, servers: [server], connections, requests, table: 'history_entries' }, round)
  }
  await compare(context, { at64: write(64), at256: write(256) })
  await server.stop()
  const at64 = context.report.rows.at(-2)
  context.report.targets.push(
    { name: 'POST history at 64, a second', value: at64?.requestsPerSecond ?? 0, atLeast: 1_000 },
    { name: 'p99 of POST history at 64, ms', value: at64?.p99Ms ?? 0, below: 250 },
  )
}

const toEntry = ({ path, key }: Request): Request => ({
  method: 'POST',
  path: path.replace('/signals', '/history'),
  key,
  body: JSON.stringify({
    action: 'deployed',
    user: { name: 'Ada Example', email: 'ada@example.com' },
    commit_sha: unique + '0'.repeat(24),
    branch_name: 'main',
  }),
})
