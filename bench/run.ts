// Measures the built binary on a Postgres and a Redis of its own, beside what it is compared with.
// bun bench/run.ts [--quick] [SECTION…]
import { writeFile } from 'node:fs/promises'
import { cpus, release, totalmem } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type Cleanups, type Ground, type Plan, prepareGround } from './ground.ts'
import { isMet, isSound, printReport, type Report } from './report.ts'
import { measureDeepHistory } from './sections/deep_history.ts'
import { measureEmbedded } from './sections/embedded.ts'
import { measureHistory } from './sections/history.ts'
import { measureMemory } from './sections/memory.ts'
import { measureRecording } from './sections/record.ts'
import { measureRefusing } from './sections/refused.ts'
import { measureReplicas } from './sections/replicas.ts'
import { measureStart } from './sections/start.ts'

const sections: Record<string, (ground: Ground) => Promise<void>> = {
  record: measureRecording,
  replicas: measureReplicas,
  refused: measureRefusing,
  embedded: measureEmbedded,
  history: measureHistory,
  deep_history: measureDeepHistory,
  start: measureStart,
  memory: measureMemory,
}

const { values, positionals } = parseArgs({ options: { quick: { type: 'boolean' } }, allowPositionals: true })
const wanted = positionals.length > 0 ? positionals : Object.keys(sections)
const unknown = wanted.filter((name) => !sections[name])
if (unknown.length > 0)
  throw new Error(`There is no section ${unknown.join(', ')}: ${Object.keys(sections).join(', ')}`)
const plan: Plan = values.quick
  ? { warmUpSeconds: 1, roundSeconds: 1, rounds: 3, memorySeconds: 10 }
  : { warmUpSeconds: 2, roundSeconds: 3, rounds: 5, memorySeconds: 60 }

const interruption = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => interruption.abort(new Error(`Interrupted by ${signal}`)))
}

const cleanups: Cleanups = []
let isGood = false
try {
  isGood = await runAll()
} catch (error) {
  complain(error)
}
for (const cleanup of cleanups.reverse()) {
  await cleanup().catch((error) => {
    isGood = false
    complain(error)
  })
}
process.exit(isGood ? 0 : 1)

async function runAll(): Promise<boolean> {
  console.error('Building, and starting Postgres and Redis')
  const ground = await prepareGround(plan, interruption.signal, cleanups)
  const { report } = ground
  for (const name of wanted) {
    const known = report.rows.length
    await sections[name]?.(ground)
    // A run takes minutes: what is known already is worth seeing.
    for (const { name, requestsPerSecond } of report.rows.slice(known)) {
      console.error(`${name}: ${Math.round(requestsPerSecond)} a second`)
    }
  }
  printReport(report)
  await save(ground, report)
  return isSound(report)
}

async function save({ database }: Ground, { rows, targets, problems }: Report): Promise<void> {
  const [versions] = await database.sql<{ postgres: string }>`select current_setting('server_version') as postgres`
  const machine = { cores: cpus().length, memoryMb: Math.round(totalmem() / 2 ** 20), kernel: release() }
  const judged = targets.map((target) => ({ ...target, met: isMet(target) }))
  const text = JSON.stringify(
    { machine, versions: { ...versions, bun: Bun.version }, plan, rows, targets: judged, problems },
    null,
    2,
  )
  await writeFile(join(import.meta.dir, 'results.json'), `${text}\n`)
}

function complain(error: unknown): void {
  console.error(error instanceof Error ? error.message : error)
}
