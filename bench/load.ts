import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Program } from '../test/programs.ts'
import type { Turn } from './compare.ts'
import { runProgram } from './processes.ts'

export type Request = { method: 'GET' | 'POST'; path: string; key: string; body: string }

export type Load = { wrk: string; folder: string; signal: AbortSignal }

type Target = { url: string; requests: Request[]; connections: number; status: number }

export type Loaded = {
  requestsPerSecond: number
  p50Ms: number
  p99Ms: number
  errors: number
  /** Requests answered, those of the warm-up included. */
  answered: number
}

type Summary = {
  requests: number
  seconds: number
  p50Ms: number
  p99Ms: number
  refused: number
  broken: number
  statuses: Record<string, number>
}

export const wrkProgram: Program = {
  name: 'wrk',
  variable: 'WRK_PATH',
  debianPackage: 'wrk',
  find: () => process.env.WRK_PATH ?? Bun.which('wrk') ?? undefined,
}

/** Requests take turns on so many connections, each of which waits for its answer before it asks again. */
export async function applyLoad(
  { wrk, folder, signal }: Load,
  { url, requests, connections, status }: Target,
  { warmUpSeconds, seconds }: Turn,
): Promise<Loaded> {
  const file = join(folder, `requests-${Bun.randomUUIDv7()}`)
  const lines = requests.map(({ method, path, key, body }) => `${[method, path, key, body].join('\t')}\n`)
  await writeFile(file, lines.join(''))
  const run = async (duration: number, ...look: 'look'[]): Promise<Summary> => {
    const how = ['--threads=1', `--connections=${connections}`, `--duration=${duration}s`, '--timeout=5s']
    const command = [wrk, ...how, `--script=${join(import.meta.dir, 'load.lua')}`, url, '--', file, ...look]
    const output = await runProgram(command, { cwd: folder, signal })
    return JSON.parse(output.trimEnd().split('\n').at(-1) ?? '')
  }
  const warmUp = warmUpSeconds > 0 ? await run(warmUpSeconds, 'look') : undefined
  const measured = await run(seconds)

  const unexpected = (status < 400 ? measured.refused : measured.requests - measured.refused) + measured.broken
  return {
    requestsPerSecond: measured.requests / measured.seconds,
    p50Ms: measured.p50Ms,
    p99Ms: measured.p99Ms,
    // Only the warm-up tells one status from another; the measured part, refusals from the rest.
    errors: (warmUp ? warmUp.requests - (warmUp.statuses[status] ?? 0) + warmUp.broken : 0) + unexpected,
    answered: (warmUp?.requests ?? 0) + measured.requests,
  }
}
