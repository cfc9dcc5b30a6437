// The guarantees under faults: two replicas of the binary on a real Postgres and Redis, under load, one fault after
// the other. bun test/faults/run.ts [--few] [--built] [a word of the names of some faults]
// --few: only the faults of every run. --built: uses the binary as it is.
import { parseArgs } from 'node:util'
import { buildBinary } from '../build.ts'
import { auditLedger } from './audit.ts'
import { auditReads, startCounting } from './audit_reads.ts'
import { auditWrites } from './audit_writes.ts'
import { awaitGate, awaitRecovery, fill, watch } from './checks.ts'
import { type Cluster, startCluster } from './cluster.ts'
import { type Fault, faults, SMALL_LIMIT } from './faults.ts'
import type { Findings } from './findings.ts'
import { prefill, sendTogether, startLoad } from './load.ts'
import { report, runChecks } from './report.ts'
import { startWriters } from './writes.ts'

const BURST = 40
/** The time of load before and after a fault, to have answers from both sides of it. */
const CALM_MS = 400

await runChecks(async (cleanups, orInterrupted) => {
  const { values, positionals } = parseArgs({
    options: { few: { type: 'boolean' }, built: { type: 'boolean' } },
    allowPositionals: true,
  })
  const [word = ''] = positionals
  const chosen = faults.filter(({ name, isInEveryRun }) => name.includes(word) && (isInEveryRun || !values.few))
  if (chosen.length === 0) throw new Error(`No fault is named "${word}"`)
  if (!values.built) await buildBinary()
  const cluster = await startCluster(cleanups)
  for (const fault of chosen) report(fault.name, await orInterrupted(check(cluster, fault)))
})

async function check(cluster: Cluster, { inject }: Fault): Promise<Findings[]> {
  const { author, ledger, replicas, sql, tenants, writes } = cluster
  const from = ledger.attempts.length
  const fromWrite = writes.attempts.length
  const small = await cluster.createTenant(SMALL_LIMIT)
  await prefill(ledger, replicas[0], small, SMALL_LIMIT)
  const watcher = watch(sql, small)
  const load = startLoad(ledger, replicas, tenants, small)
  const counting = startCounting(sql, [...tenants, small])
  const writers = startWriters(writes, replicas, author)
  try {
    await Bun.sleep(CALM_MS)
    const burst = sendTogether(ledger, replicas, small, BURST)
    // On their way, and not yet answered.
    await Bun.sleep(2)
    const assess = await inject(cluster, small)
    const service = await awaitRecovery(cluster)
    await Bun.sleep(CALM_MS)
    await Promise.all([writers.stop(), counting.stop(), burst, load.stop()])
    const filled = await fill(cluster, small, SMALL_LIMIT)
    const gate = await awaitGate(cluster, small)
    const watched = await watcher.stop()
    const recorded = await auditLedger(sql, ledger, from)
    const written = await auditWrites(sql, writes, fromWrite, author, replicas[0])
    const readBack = await auditReads(sql, replicas, [...tenants, small])
    return [await assess(), recorded, readBack, written, watched, filled, service, gate]
  } finally {
    await Promise.all([load.stop(), counting.stop(), writers.stop(), watcher.stop()])
  }
}
