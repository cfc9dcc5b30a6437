import type { Context } from '../context.ts'
import { startTable } from '../database.ts'
import { applyOpenLoad } from '../open_loop.ts'

const connections = 256

/** Signals that arrive at random, as from many callers who know nothing of each other, at parts of the capacity. */
export async function measureOpenLoop({ database, plan, report, requests, serve }: Context): Promise<void> {
  await startTable(database, 'signals')
  const server = await serve()
  const seconds = plan.rounds * plan.roundSeconds
  const load = { url: server.url, requests, connections, status: 201 }
  await applyOpenLoad({ ...load, seconds: plan.warmUpSeconds, rate: undefined })
  const { requestsPerSecond: capacity } = await applyOpenLoad({ ...load, seconds, rate: undefined })
  for (const share of [0.25, 0.5, 0.9]) {
    const { answered: _, ...row } = await applyOpenLoad({ ...load, seconds, rate: share * capacity })
    report.rows.push({
      name: `POST signals arriving at random, ${share * 100} % of capacity`,
      ...row,
      residentMb: null,
    })
  }
  await server.stop()
}
