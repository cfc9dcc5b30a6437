// Measures the built binary on a throwaway Postgres and Redis, alternating with what it is compared with.
// bun bench/run.ts [--quick] [SECTION…]
import { writeFile } from 'node:fs/promises'
import { cpus, release, totalmem } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type Cleanups, type Context, prepareContext } from './context.ts'
import { fullPlan, quickPlan } from './plan.ts'
import { isMet, isSound, printReport, type Report } from './report.ts'
import { measureBatches } from './sections/batches.ts'
import { measureConsole } from './sections/console.ts'
import { measureDeepHistory } from './sections/deep_history.ts'
import { measureEmbedded } from './sections/embedded.ts'
import { measureHistory } from './sections/history.ts'
import { measureHistoryWrites } from './sections/history_writes.ts'
import { measureKeyed } from './sections/keyed.ts'
import { measureLargeTables } from './sections/large_tables.ts'
import { measureMemory } from './sections/memory.ts'
import { measureOpenLoop } from './sections/open_loop.ts'
import { measureOrganisations } from './sections/organisations.ts'
import { measureRecording } from './sections/record.ts'
import { measureRefusing } from './sections/refused.ts'
import { measureReplicas } from './sections/replicas.ts'
import { measureSignalReads } from './sections/signal_reads.ts'
import { measureSnapshot } from './sections/snapshot.ts'
import { measureStart } from './sections/start.ts'
import { measureSync } from './sections/sync.ts'

const sections: Record<string, (context: Context) => Promise<void>> = {
  record: measureRecording,
  batches: measureBatches,
  keyed: measureKeyed,
  organisations: measureOrganisations,
  snapshot: measureSnapshot,
  open_loop: measureOpenLoop,
  replicas: measureReplicas,
  refused: measureRefusing,
  embedded: measureEmbedded,
  history: measureHistory,
  history_writes: measureHistoryWrites,
  deep_history: measureDeepHistory,
  sync: measureSync,
  signal_reads: measureSignalReads,
  large_tables: measureLargeTables,
  console: measureConsole,
  start: measureStart,
  memory: measureMemory,
}

const { values, positionals } = parseArgs({ options: { quick: { type: 'boolean' } }, allowPositionals: true })
const wanted = positionals.length > 0 ? positionals : Object.keys(sections)
const unknown = wanted.filter((name) => !sections[name])
if (unknown.length > 0)
  throw new Error(`There is no section ${unknown.join(', ')}: ${Object.keys(sections).join(', ')}`)
const plan = values.quick ? quickPlan : fullPlan

const interruption = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => interruption.abort(new Error(`Interrupted by ${signal}`)))
}

const cleanups: Cleanups = []
let isGood = false
try {
  isGood = await runAll()
} catch (error) {
  reportError(error)
}
for (const cleanup of cleanups.reverse()) {
  await cleanup().catch((error) => {
    isGood = false
    reportError(error)
  })
}
process.exit(isGood ? 0 : 1)

async function runAll(): Promise<boolean> {
  console.error('Building, and starting Postgres and Redis')
  const context = await prepareContext(plan, interruption.signal, cleanups)
  const { report } = context
  for (const name of wanted) {
    const known = report.rows.length
    await sections[name]?.(context)
    // A run takes minutes, so results are shown as they come.
    for (const { name, requestsPerSecond } of report.rows.slice(known)) {
      console.error(`${name}: ${Math.round(requestsPerSecond)} a second`)
    }
  }
  printReport(report)
  await save(context, report)
  return isSound(report)
}

async function save({ database }: Context, { rows, targets, problems }: Report): Promise<void> {
  const [versions] = await database.sql<{ postgres: string }>`select current_setting('server_version') as postgres`
  const machine = { cores: cpus().length, memoryMb: Math.round(totalmem() / 2 ** 20), kernel: release() }
  const results = targets.map((target) => ({ ...target, met: isMet(target) }))
  const text = JSON.stringify(
    { machine, versions: { ...versions, bun: Bun.version }, plan, rows, targets: results, problems },
    null,
    2,
  )
  await writeFile(join(import.meta.dir, 'results.json'), `${text}\n`)
}

function reportError(error: unknown): void {
  console.error(error instanceof Error ? error.message : error)
}
