// The guarantees under faults: two replicas of the binary on a real Postgres and Redis, under load, one fault after
// the other. bun test/faults/run.ts [a word of the names of some faults]
import { join } from 'node:path'
import { auditLedger } from './audit.ts'
import { auditWrites } from './audit_writes.ts'
import { awaitGate, awaitService, fill, watch } from './checks.ts'
import { type Fault, faults, SMALL_LIMIT } from './faults.ts'
import type { Findings } from './findings.ts'
import { startKeyChanges } from './key_changes.ts'
import { ask, startLoad, wishFor } from './load.ts'
import type { Replica, Tenant } from './post.ts'
import { type Cleanups, type Scene, setScene } from './scene.ts'
import { startWriters } from './writes.ts'

/** So that the small organisation is close to its limit when the fault comes, and not at it. */
const PREFILL = 180
const BURST = 40
/** Before and after a fault, to have answers from both sides of it. */
const CALM_MS = 400

const cleanups: Cleanups = []
const total = { passed: 0, failed: 0 }
const interruption = new Promise<never>((_, reject) => {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => reject(new Error(`Interrupted by ${signal}`)))
  }
})
// It may come when nobody waits for it: at the start, which has to end before it can be undone.
interruption.catch(() => {})

try {
  await build()
  const scene = await setScene(cleanups)
  const chosen = faults.filter(({ name }) => name.includes(process.argv[2] ?? ''))
  if (chosen.length === 0) throw new Error(`No fault is named "${process.argv[2]}"`)
  for (const fault of chosen) report(fault, await Promise.race([check(scene, fault), interruption]))
} catch (error) {
  total.failed++
  console.error(error)
}
for (const cleanup of cleanups.reverse()) await cleanup().catch(console.error)
console.log(`${total.passed} passed, ${total.failed} failed`)
process.exit(total.failed === 0 ? 0 : 1)

async function build(): Promise<void> {
  const child = Bun.spawn([process.execPath, '--no-env-file', 'scripts/build.ts'], {
    cwd: join(import.meta.dir, '../..'),
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  if ((await child.exited) !== 0) throw new Error('The binary could not be built')
}

async function check(scene: Scene, { inject, limit = SMALL_LIMIT }: Fault): Promise<Findings[]> {
  const { author, ledger, replicas, sql, tenants, writes } = scene
  const from = ledger.attempts.length
  const fromWrite = writes.attempts.length
  const small = await scene.createTenant(SMALL_LIMIT)
  await askTogether(scene, small, PREFILL)
  const watcher = watch(sql, small)
  const load = startLoad(ledger, replicas, tenants, small)
  const writers = startWriters(writes, replicas, author)
  const keyChanges = startKeyChanges(scene)
  try {
    await Bun.sleep(CALM_MS)
    const burst = askTogether(scene, small, BURST)
    // On their way, and not yet answered.
    await Bun.sleep(2)
    const judge = await inject(scene, small)
    const service = await awaitService(scene)
    await Bun.sleep(CALM_MS)
    const [keys] = await Promise.all([keyChanges.stop(), writers.stop(), burst, load.stop()])
    const filled = await fill(scene, small, limit)
    const gate = await awaitGate(scene, small)
    const watched = await watcher.stop()
    const recorded = await auditLedger(sql, ledger, from)
    const written = await auditWrites(sql, writes, fromWrite, author, replicas[0])
    return [await judge(), recorded, written, keys, watched, filled, service, gate]
  } finally {
    await Promise.all([load.stop(), writers.stop(), keyChanges.stop(), watcher.stop()])
  }
}

function askTogether({ ledger, replicas }: Scene, tenant: Tenant, number: number): Promise<unknown> {
  return Promise.all(
    Array.from({ length: number }, (_, i) => ask(ledger, replicas[i % 2] as Replica, wishFor(tenant, false))),
  )
}

function report({ name }: Fault, findings: Findings[]): void {
  const problems = findings.flatMap((one) => one.problems)
  total[problems.length === 0 ? 'passed' : 'failed']++
  const figures = findings.map((one) => one.figures).join('; ')
  console.log(`${problems.length === 0 ? 'pass' : 'FAIL'} ${name}: ${figures}`)
  for (const problem of problems) console.log(`     ${problem}`)
}
