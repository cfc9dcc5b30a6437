// A long run under mixed load: every operation and command, with memory and open files that must stay flat.
// bun run test:soak [--seconds 600] [--embedded]
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { residentMb } from '../../bench/processes.ts'
import { runForOne, type Settings, startServer } from '../binary.ts'
import { buildBinary } from '../build.ts'
import { startPostgres, startRedis } from '../services.ts'
import { chooseOperation, type Target } from './operations.ts'

const CLIENTS = 8
const COMMANDS_EVERY_MS = 5_000
const SAMPLE_MS = 500
/** What the last quarter may have more than the second one: the first is for the caches to fill. */
const MAX_GROWTH = { mb: 24, share: 0.1, files: 8 }

type Sample = { mb: number; files: number }

const { values } = parseArgs({
  options: { seconds: { type: 'string', default: '600' }, embedded: { type: 'boolean', default: false } },
})
const seconds = Number(values.seconds)
const problems: string[] = []
const counts = new Map<string, number>()
const folder = mkdtempSync(join(tmpdir(), 'ps-soak-'))
const cleanups: (() => unknown)[] = [() => rmSync(folder, { recursive: true, force: true })]
const interruption = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => interruption.abort())

try {
  await soak()
} catch (error) {
  problems.push(error instanceof Error ? error.message : String(error))
}
for (const cleanup of cleanups.reverse()) await cleanup()
if (interruption.signal.aborted) problems.push('interrupted')
for (const problem of problems) console.log(`FAIL ${problem}`)
console.log(problems.length === 0 ? 'pass' : `${problems.length} problems`)
process.exit(problems.length === 0 ? 0 : 1)

async function soak(): Promise<void> {
  await buildBinary()
  const settings = await prepareDatabase()
  const server = await startServer(settings)
  cleanups.push(server.kill)
  const { target, org } = await prepareTarget(server.url, settings)
  const samples: Sample[] = []
  const endsAt = performance.now() + seconds * 1_000
  const isRunning = () => performance.now() < endsAt && !interruption.signal.aborted
  const sampling = (async () => {
    for (; isRunning(); await Bun.sleep(SAMPLE_MS)) samples.push(await measure(server.pid))
  })()
  const commanding = (async () => {
    for (let round = 0; isRunning(); round += 1, await Bun.sleep(COMMANDS_EVERY_MS)) await command(settings, org, round)
  })()
  const clients = Array.from({ length: CLIENTS }, async () => {
    while (isRunning()) await request(target)
  })
  await Promise.all([sampling, commanding, ...clients])
  checkGrowth(samples)
  await audit(settings, org)
  const status = await server.stop()
  if (status !== 0) problems.push(`the service ended with status ${status}`)
}

/** Throwaway servers, or a throwaway data directory; never those that the environment names. */
async function prepareDatabase(): Promise<Settings> {
  if (values.embedded) return { DATA_DIR: join(folder, 'data') }
  const postgres = await startPostgres()
  cleanups.push(postgres.stop)
  const redis = await startRedis()
  cleanups.push(redis.stop)
  const settings = { DATABASE_URL: postgres.url, REDIS_URL: redis.url }
  await runForOne(['migrate'], settings)
  return settings
}

async function prepareTarget(url: string, settings: Settings): Promise<{ target: Target; org: string }> {
  const one = (...args: string[]) => runForOne(args, settings)
  const create = async (limit: string) => {
    const { id: org = '' } = await one('orgs', 'create', '--name', 'Soak', '--plan', 'free', '--monthly-limit', limit)
    const { key = '' } = await one('keys', 'create', '--org', org)
    const { id: prompt = '' } = await one('prompts', 'create', '--org', org, '--name', 'Soak')
    return { org, key, prompt }
  }
  const [roomy, full] = [await create('2000000000'), await create('0')]
  const { path = '', secret = '' } = await one('webhooks', 'github', 'set', '--org', roomy.org)
  const file = 'prompts/soak.md'
  await one('prompts', 'link', roomy.prompt, '--repository', 'acme/prompts', '--path', file)
  return { target: { url, roomy, full, webhook: { path, secret, file } }, org: roomy.org }
}

async function request(target: Target): Promise<void> {
  const { name, statuses, send } = chooseOperation()
  const outcome = await send(target)
    .then(async (response) => {
      await response.arrayBuffer()
      const isReplayed = response.headers.get('idempotent-replayed') === 'true'
      if (name.includes('signal') && response.status === 201 && !isReplayed) count('signals recorded')
      return statuses.includes(response.status) ? undefined : `${response.status}`
    })
    .catch((error: Error) => error.message)
  count(name)
  if (outcome && problems.length < 20) problems.push(`${name}: ${outcome}`)
}

function count(name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1)
}

async function command(settings: Settings, org: string, round: number): Promise<void> {
  const one = (...args: string[]) => runForOne(args, settings)
  const { id = '' } = await one('keys', 'create', '--org', org, '--name', `round ${round}`)
  await one('keys', 'revoke', id)
  await one('orgs', 'set-plan', org, round % 2 ? 'team' : 'business', '--monthly-limit', '2000000000')
  if (round % 6 === 0) await one('backup', join(folder, 'backup'))
  count('rounds of commands')
}

async function measure(pid: number): Promise<Sample> {
  return { mb: await residentMb(pid), files: readdirSync(`/proc/${pid}/fd`).length }
}

function checkGrowth(samples: Sample[]): void {
  const quarter = (nth: number) => samples.slice((samples.length * nth) / 4, (samples.length * (nth + 1)) / 4)
  const median = (of: (sample: Sample) => number, nth: number) => {
    const sorted = quarter(nth)
      .map(of)
      .sort((a, b) => a - b)
    return sorted[sorted.length >> 1] ?? 0
  }
  const quarters = [0, 1, 2, 3]
  const [mb, files] = [
    quarters.map((nth) => Math.round(median((sample) => sample.mb, nth))),
    quarters.map((nth) => median((sample) => sample.files, nth)),
  ] as [[number, number, number, number], [number, number, number, number]]
  console.log(`${seconds} s on ${values.embedded ? 'the embedded database' : 'Postgres and Redis'}`)
  for (const [name, times] of [...counts].sort(([, a], [, b]) => b - a)) console.log(`  ${times} ${name}`)
  console.log(`  memory in MB by quarters: ${mb.join(', ')}; open files: ${files.join(', ')}`)
  if (mb[3] > mb[1] * (1 + MAX_GROWTH.share) + MAX_GROWTH.mb) problems.push(`memory grew from ${mb[1]} to ${mb[3]} MB`)
  if (files[3] > files[1] + MAX_GROWTH.files) problems.push(`open files grew from ${files[1]} to ${files[3]}`)
}

/** What was acknowledged is what is counted. */
async function audit(settings: Settings, org: string): Promise<void> {
  const { used } = await runForOne(['orgs', 'set-plan', org, 'team', '--monthly-limit', '2000000000'], settings)
  const recorded = counts.get('signals recorded') ?? 0
  if (Number(used) !== recorded) problems.push(`${recorded} signals were acknowledged, ${used} are counted`)
}
