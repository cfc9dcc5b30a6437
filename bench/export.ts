import { join } from 'node:path'
import { compare } from './compare.ts'
import type { Context } from './context.ts'
import { promptOf } from './fixtures.ts'
import type { Request } from './load.ts'
import { residentMb, runProgram } from './processes.ts'
import type { Row } from './report.ts'
import type { Server } from './server.ts'

/** Rounds enough for a median: each round reads everything twice. */
const rounds = 3

/** An export of many signals over HTTP, beside psql's \copy of the same columns. */
export async function measureExport(context: Context, server: Server, request: Request, count: number): Promise<void> {
  const { databaseUrl, folder, pgbench, plan, report, signal } = context
  let largestMb = 0

  const rowOf = (name: string, ms: number, memoryMb: number | null): Row => ({
    name,
    requestsPerSecond: (1_000 * count) / ms,
    p50Ms: ms,
    p99Ms: ms,
    errors: 0,
    residentMb: memoryMb,
  })

  async function read(): Promise<Row> {
    const beganAt = performance.now()
    const response = await fetch(`${server.url}${request.path}/export`, {
      headers: { authorization: `Bearer ${request.key}`, 'accept-encoding': 'identity' },
      signal,
    })
    let lines = 0
    let memoryMb = 0
    let chunks = 0
    for await (const chunk of response.body as ReadableStream<Uint8Array>) {
      for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, at + 1)) lines += 1
      // The memory is read now and then, because a reading takes as long as a chunk.
      if (chunks % 64 === 0) memoryMb = Math.max(memoryMb, await residentMb(server.pid))
      chunks += 1
    }
    if (lines !== count) report.problems.push(`an export has ${lines} of ${count} signals`)
    largestMb = Math.max(largestMb, memoryMb)
    return rowOf('signals exported over HTTP', performance.now() - beganAt, memoryMb)
  }

  async function copy(): Promise<Row> {
    const id = `(select id from prompts where public_id = '${promptOf(request)}')`
    const rows = `select id, value, metadata, created_at from signals where prompt_id = ${id} order by created_at, id`
    const statement = `\\copy (${rows}) to '${join(folder, 'copied')}'`
    const beganAt = performance.now()
    await runProgram([join(pgbench, '../psql'), '--no-psqlrc', '-q', '-c', statement, databaseUrl], {
      cwd: folder,
      signal,
    })
    return rowOf('signals copied by psql', performance.now() - beganAt, null)
  }

  const ratio = await compare({ plan: { ...plan, rounds }, report }, { exports: read, copies: copy })
  report.targets.push(
    {
      name: `export of ${count.toLocaleString('en-GB')} signals ÷ \\copy`,
      value: ratio('exports', 'copies'),
      atLeast: 0.3,
    },
    { name: 'memory of a service that exports, MB', value: largestMb, atMost: 200 },
  )
}
