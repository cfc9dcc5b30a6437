// The guarantees under faults: replicas of the binary on real servers, under load, one fault after the other.
// bun test/faults/run.ts [--few] [--built] [a word of the names of some faults]
// bun test/faults/run.ts --cluster: on highly available servers, which lose one after the other.
// bun test/faults/run.ts --soak [--seconds 600] [--embedded]: no fault, for a long time.
// --few: only the faults of every run. --built: uses the binary as it is.
import { parseArgs } from 'node:util'
import { buildBinary } from '../build.ts'
import { clusterPrograms, findOrInstall } from '../programs.ts'
import { audit, type Findings, startCounting } from './audit.ts'
import { awaitGate, awaitRecovery, fill, SMALL_LIMIT, watch } from './checks.ts'
import { clusterFaults } from './cluster_faults.ts'
import { type Fault, faults } from './faults.ts'
import { prefill, type Replica, sendTogether, startLoad } from './load.ts'
import { createSoak, SOAK_CLIENTS } from './soak.ts'
import { type Cleanups, type System, startClustered, startEmbedded, startPlain } from './system.ts'

const BURST = 40
/** The time of load before and after a fault, to have answers from both sides of it. */
const CALM_MS = 400

const { values, positionals } = parseArgs({
  options: {
    few: { type: 'boolean' },
    built: { type: 'boolean' },
    cluster: { type: 'boolean' },
    soak: { type: 'boolean' },
    seconds: { type: 'string', default: '600' },
    embedded: { type: 'boolean' },
  },
  allowPositionals: true,
})
const total = { passed: 0, failed: 0 }
const cleanups: Cleanups = []
const interruption = new Promise<never>((_, reject) => {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => reject(new Error(`Interrupted by ${signal}`)))
  }
})
// It may come when nobody waits for it: at the start, which has to end before it can be undone.
interruption.catch(() => {})

try {
  await runChosen()
} catch (error) {
  total.failed++
  console.error(error)
}
for (const cleanup of cleanups.reverse()) await cleanup().catch(console.error)
console.log(`${total.passed} passed, ${total.failed} failed`)
process.exit(total.failed === 0 ? 0 : 1)

async function runChosen(): Promise<void> {
  const [word = ''] = positionals
  const chosen = faults.filter(({ name, isInEveryRun }) => name.includes(word) && (isInEveryRun || !values.few))
  if (chosen.length === 0) throw new Error(`No fault is named "${word}"`)
  if (values.cluster) await findOrInstall(clusterPrograms)
  if (!values.built) await buildBinary()
  if (values.cluster) return checkAll(await startClustered(cleanups), clusterFaults)
  if (!values.soak) return checkAll(await startPlain(cleanups), chosen)
  const start = values.embedded ? startEmbedded : startPlain
  await checkAll<System>(await start(cleanups, SOAK_CLIENTS), [createSoak(Number(values.seconds))])
}

/** Prints what was found under each fault. */
async function checkAll<S extends System>(system: S, list: Fault<S>[]): Promise<void> {
  for (const fault of list) {
    const findings = await Promise.race([check(system, fault), interruption])
    const problems = findings.flatMap((one) => one.problems)
    total[problems.length === 0 ? 'passed' : 'failed']++
    const figures = findings.map((one) => one.figures).join('; ')
    console.log(`${problems.length === 0 ? 'pass' : 'FAIL'} ${fault.name}: ${figures}`)
    for (const problem of problems) console.log(`     ${problem}`)
  }
}

async function check<S extends System>(system: S, { inject }: Fault<S>): Promise<Findings[]> {
  const { ledger, replicas, sql, tenants } = system
  const from = ledger.attempts.length
  const small = await system.createTenant(SMALL_LIMIT)
  await prefill(ledger, replicas[0] as Replica, small, SMALL_LIMIT)
  const watcher = watch(sql, small)
  const load = startLoad(system, small)
  const counting = startCounting(sql, [...tenants, small])
  try {
    await Bun.sleep(CALM_MS)
    const burst = sendTogether(ledger, replicas, small, BURST)
    // On their way, and not yet answered.
    await Bun.sleep(2)
    const assess = await inject(system, small)
    const service = await awaitRecovery(system)
    await Bun.sleep(CALM_MS)
    await Promise.all([counting.stop(), burst, load.stop()])
    const filled = await fill(system, small)
    const gate = await awaitGate(system, small)
    const watched = await watcher.stop()
    return [assess(), ...(await audit(system, small, from)), watched, filled, service, gate]
  } finally {
    await Promise.all([load.stop(), counting.stop(), watcher.stop()])
  }
}
