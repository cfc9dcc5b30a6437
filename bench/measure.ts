import type { Db } from '../src/db/client.ts'
import type { Context } from './context.ts'
import { countSettled, findMiscounted, startTable, type Table } from './database.ts'
import { applyLoad, type Request } from './load.ts'
import type { Round } from './plan.ts'
import { residentMb } from './processes.ts'
import type { Row } from './report.ts'
import type { Server } from './server.ts'

type Phase = {
  name: string
  servers: Server[]
  /** On each server. */
  connections: number
  requests?: Request[]
  /** The expected status, 201 by default, and how many rows an answer with it records: one with 201, none by default. */
  status?: number
  rowsEach?: number
  /** The table that is written to, and its database. */
  table?: Table
  database?: Db
}

/** Puts the servers under load concurrently, and checks that exactly what was answered is what was recorded. */
export async function measure(context: Context, phase: Phase, round: Round): Promise<Row> {
  const { servers, connections, requests = context.requests, status = 201, table = 'signals' } = phase
  const { name, database = context.database, rowsEach = status === 201 ? 1 : 0 } = phase
  const before = await startTable(database, table)
  const loads = await Promise.all(
    servers.map(({ url }) => applyLoad(context.load, { url, requests, connections, status }, round)),
  )
  const memory = await Promise.all(servers.map(({ pid }) => residentMb(pid)))
  const sum = (numbers: number[]) => numbers.reduce((total, number) => total + number, 0)

  const recorded = (await countSettled(database, table)) - before
  const answered = rowsEach * sum(loads.map((load) => load.answered))
  // When the warm-up and the measured part end, each connection abandons one request, which may still be recorded.
  const abandoned = rowsEach * (round.warmUpSeconds > 0 ? 2 : 1) * connections * servers.length
  if (recorded < answered || recorded > answered + abandoned) {
    context.report.problems.push(`${name}: the answers are for ${answered} rows, and ${recorded} are there`)
  }
  if (table === 'signals') {
    for (const { organisation, used, recorded } of await findMiscounted(database)) {
      context.report.problems.push(`${name}: organisation ${organisation} has ${recorded} signals, counted as ${used}`)
    }
  }

  return {
    name,
    requestsPerSecond: sum(loads.map((load) => load.requestsPerSecond)),
    p50Ms: Math.max(...loads.map((load) => load.p50Ms)),
    p99Ms: Math.max(...loads.map((load) => load.p99Ms)),
    errors: sum(loads.map((load) => load.errors)),
    residentMb: sum(memory),
  }
}
