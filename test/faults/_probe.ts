import { setScene } from './scene.ts'
import { ask, wishFor, startLoad } from './load.ts'
const cleanups: any[] = []
try {
  const s = await setScene(cleanups)
  const small = await s.createTenant(100000)
  const load = process.argv[2] === 'load' ? startLoad(s.ledger, s.replicas, s.tenants, small) : undefined
  await Bun.sleep(500)
  for (let round = 0; round < 6; round++) {
    const at = performance.now()
    const n = s.ledger.attempts.length
    let rows: any[] = []; for (let k = 0; k < 10; k++) { await Bun.sleep(100); rows.push(...await s.sql`select pg_terminate_backend(pid) from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()`) }
    for (let i = 0; i < 30; i++) { await ask(s.ledger, s.replicas[0], wishFor(s.tenants[0]!, false)); await Bun.sleep(50) }
    const all = s.ledger.attempts.slice(n)
    const slow = all.filter(a => a.ms > 500)
    console.log('round', round, rows.length, 'requests', all.length, '500s', all.filter(a=>a.status===500).length, 'slow', slow.length, slow.slice(0,6).map(a => `${a.replica} +${Math.round(a.askedAt - at)} ${Math.round(a.ms)}ms ${a.status}`).join(' | '))
  }
  await load?.stop()
  console.log(s.replicas[0].server.stdout().split('\n').slice(-8).map(l=>l.slice(0,400)).join('\n'))
} finally { for (const c of cleanups.reverse()) await c().catch(console.error) }
process.exit(0)
