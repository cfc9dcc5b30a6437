import type { Context } from '../context.ts'
import { openOwnDatabase, startTable } from '../database.ts'
import { applyLoad } from '../load.ts'

const connections = 64

/**
 * The rate of signals while a snapshot is held open, as pg_dump or a report does: nothing that was updated since
 * can be pruned. Compared with the rates before and after it, as a machine's speed drifts.
 */
export async function measureSnapshot(context: Context): Promise<void> {
  const { plan, report } = context
  await startTable(context.database, 'signals')
  const server = await context.serve()
  const load = async (name: string, warmUpSeconds: number): Promise<number> => {
    const target = { url: server.url, requests: context.requests, connections, status: 201 }
    const result = await applyLoad(context.load, target, { warmUpSeconds, seconds: 4 * plan.roundSeconds })
    const { requestsPerSecond, p50Ms, p99Ms, errors } = result
    const row = { requestsPerSecond, p50Ms, p99Ms, errors, residentMb: null }
    report.rows.push({ name: `POST signals, ${name}, ${connections} connections`, ...row })
    return requestsPerSecond
  }

  const before = await load('before a snapshot', plan.warmUpSeconds)
  const reader = await openOwnDatabase(context.operator.settings)
  const during = await reader.transaction(async (sql) => {
    await sql.script('set transaction isolation level repeatable read, read only; select from organisations limit 1')
    return load(`a snapshot held for ${plan.snapshotSeconds} s`, plan.snapshotSeconds)
  })
  await reader.close()
  const after = await load('after the snapshot', plan.warmUpSeconds)
  await server.stop()
  report.targets.push({
    name: `signals under a snapshot of ${plan.snapshotSeconds} s ÷ without`,
    value: during / ((before + after) / 2),
    atLeast: 0.8,
  })
}
