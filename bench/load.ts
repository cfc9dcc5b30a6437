import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Program } from '../test/programs.ts'
import type { Round } from './plan.ts'
import { runProgram } from './processes.ts'

export type Request = { method: 'GET' | 'POST'; path: string; key: string; body: string; idempotencyKey?: string }

/** Stands for sixteen characters that are different in every request sent; as long as these, so that lengths stay. */
export const unique = '@unique@@@@@@@@@'

export type LoadTool = { wrk: string; folder: string; signal: AbortSignal }

type Target = { url: string; requests: Request[]; connections: number; status: number }

export type LoadResult = {
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
  failed: number
  broken: number
  statuses: Record<string, number>
}

export const wrkProgram: Program = {
  name: 'wrk',
  variable: 'WRK_PATH',
  debianPackage: 'wrk',
  find: () => process.env.WRK_PATH ?? Bun.which('wrk') ?? undefined,
}

/** Closed-loop load: each connection waits for its answer before it sends the next request of the list. */
export async function applyLoad(
  { wrk, folder, signal }: LoadTool,
  { url, requests, connections, status }: Target,
  { warmUpSeconds, seconds }: Round,
): Promise<LoadResult> {
  const file = join(folder, `requests-${Bun.randomUUIDv7()}`)
  const lines = requests.map(({ method, path, key, idempotencyKey = '', body }) =>
    [method, path, key, idempotencyKey, body].join('\t'),
  )
  await writeFile(file, `${lines.join('\n')}\n`)
  const run = async (duration: number, ...countStatuses: 'count-statuses'[]): Promise<Summary> => {
    const options = ['--threads=1', `--connections=${connections}`, `--duration=${duration}s`, '--timeout=5s']
    const script = `--script=${join(import.meta.dir, 'load.lua')}`
    const runId = crypto.getRandomValues(new Uint32Array(1))[0]?.toString(16).padStart(8, '0') ?? ''
    const output = await runProgram([wrk, ...options, script, url, '--', file, runId, ...countStatuses], {
      cwd: folder,
      signal,
    })
    return JSON.parse(output.trimEnd().split('\n').at(-1) ?? '')
  }
  const warmUp = warmUpSeconds > 0 ? await run(warmUpSeconds, 'count-statuses') : undefined
  const measured = await run(seconds)

  const unexpected = (status < 400 ? measured.failed : measured.requests - measured.failed) + measured.broken
  return {
    requestsPerSecond: measured.requests / measured.seconds,
    p50Ms: measured.p50Ms,
    p99Ms: measured.p99Ms,
    // Only the warm-up counts each status; the measured part counts errors and the rest.
    errors: (warmUp ? warmUp.requests - (warmUp.statuses[status] ?? 0) + warmUp.broken : 0) + unexpected,
    answered: (warmUp?.requests ?? 0) + measured.requests,
  }
}
