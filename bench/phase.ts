import type { Db } from '../src/db/client.ts'
import type { Turn } from './compare.ts'
import { countSettled, findMiscounted, startAfresh, type Table } from './database.ts'
import type { Ground } from './ground.ts'
import { applyLoad, type Request } from './load.ts'
import { residentMb } from './processes.ts'
import type { Row } from './report.ts'
import type { Server } from './server.ts'

type Phase = {
  name: string
  servers: Server[]
  /** On each server. */
  connections: number
  requests?: Request[]
  /** The one right answer; 201 unless told. */
  status?: number
  /** Where the signals go, and in which database. */
  table?: Table
  database?: Db
}

/** Puts the servers under load at once, and checks that exactly what was answered is what was recorded. */
export async function measure(ground: Ground, phase: Phase, turn: Turn): Promise<Row> {
  const { servers, connections, requests = ground.requests, status = 201, table = 'signals' } = phase
  const { name, database = ground.database } = phase
  await startAfresh(database, table)
  const loads = await Promise.all(
    servers.map(({ url }) => applyLoad(ground.load, { url, requests, connections, status }, turn)),
  )
  const memory = await Promise.all(servers.map(({ pid }) => residentMb(pid)))
  const sum = (numbers: number[]) => numbers.reduce((total, number) => total + number, 0)

  const recorded = await countSettled(database, table)
  const answered = status === 201 ? sum(loads.map((load) => load.answered)) : 0
  // At the end of the warm-up and of the measured part, each connection leaves a request whose answer nobody hears.
  const unheard = status === 201 ? (turn.warmUpSeconds > 0 ? 2 : 1) * connections * servers.length : 0
  if (recorded < answered || recorded > answered + unheard) {
    ground.report.problems.push(`${name}: ${answered} signals were answered with 201, and ${recorded} are recorded`)
  }
  if (table === 'signals') {
    for (const { organisation, used, recorded } of await findMiscounted(database)) {
      ground.report.problems.push(`${name}: organisation ${organisation} has ${recorded} signals, counted as ${used}`)
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
