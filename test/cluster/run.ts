// The guarantees on highly available servers: under load, Postgres and Redis lose one server after the other.
// bun test/cluster/run.ts [--built]
// --built: uses the binary as it is.
import { buildBinary } from '../build.ts'
import { auditLedger } from '../faults/audit.ts'
import { auditReads, startCounting } from '../faults/audit_reads.ts'
import { watch } from '../faults/checks.ts'
import { compare, type Findings } from '../faults/findings.ts'
import { startLoad } from '../faults/load.ts'
import { together } from '../faults/repeat.ts'
import { report, runChecks } from '../faults/report.ts'
import { clusterPrograms, findOrInstall } from '../programs.ts'
import { events } from './events.ts'
import { type System, startSystem } from './system.ts'

/** Few, to leave the machine to the servers: of both replicas by turns, and of each, which the other does not slow down. */
const CLIENTS = 4

await runChecks(async (cleanups, orInterrupted) => {
  await findOrInstall(clusterPrograms)
  if (!process.argv.includes('--built')) await buildBinary()
  const system = await startSystem(cleanups)
  await orInterrupted(check(system))
})

async function check(system: System): Promise<void> {
  const { ledger, replicas, sql, tenants, small } = system
  const watcher = watch(sql, small)
  const counting = startCounting(sql, [...tenants, small])
  const load = together(
    [replicas, ...replicas.map((one) => [one])].map((used) => startLoad(ledger, used, tenants, small, CLIENTS)),
  )
  for (const { name, happen } of events) report(name, [await happen(system)])
  await Promise.all([load.stop(), counting.stop()])
  report('every acknowledged signal is a row, counts equal rows, no replica ended', [
    await auditLedger(sql, ledger, 0),
    await auditReads(sql, replicas, [...tenants, small]),
    await watcher.stop(),
    auditReplicas(system),
  ])
}

/** Through everything they answered every request. */
function auditReplicas({ ended, ledger }: System): Findings {
  const problems: string[] = []
  const unanswered = ledger.attempts.filter(({ status }) => status === 0).length
  compare(problems, 'replicas that ended', [], ended)
  compare(problems, 'requests without an answer', 0, unanswered)
  const rejected = ledger.attempts.filter(({ status }) => status === 503).length
  return { figures: `${rejected} answered 503, ${unanswered} not answered`, problems }
}
