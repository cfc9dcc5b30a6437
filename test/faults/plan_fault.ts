// A plan is changed while its organisation is recording.
import { run } from '../binary.ts'
import type { Cluster, RunningReplica } from './cluster.ts'
import { compare, type Findings, hit, touched } from './findings.ts'
import { createSignalRequest, send } from './load.ts'
import type { Tenant } from './post.ts'

export const RAISED_LIMIT = 1_200

/** Down below what is used and up again, by an operator who knows of Redis and by one who does not. */
export async function changePlan(cluster: Cluster, small: Tenant): Promise<() => Findings> {
  const { DATABASE_URL, REDIS_URL } = cluster.settings
  const problems: string[] = []
  const sent = { refused: 0, recorded: 0 }
  const from = performance.now()

  async function setLimit(settings: Record<string, string>, limit: number): Promise<void> {
    const args = ['orgs', 'set-plan', small.org, 'free', '--monthly-limit', `${limit}`]
    const { status, stderr } = await run(args, { settings })
    compare(problems, 'exit status of set-plan', [0, ''], [status, stderr])
  }
  async function expectNext(status: 201 | 429, limit: number): Promise<void> {
    const next = cluster.replicas.flatMap((replica: RunningReplica) => Array<RunningReplica>(8).fill(replica))
    const answers = await Promise.all(
      next.map((replica) => send(cluster.ledger, replica, createSignalRequest(small, false))),
    )
    sent[status === 201 ? 'recorded' : 'refused'] += answers.length
    const said = answers.map(
      (one) => `${one.status} ${status === 429 ? JSON.parse(one.text || '{}').error?.limit : limit}`,
    )
    compare(problems, `answers after the limit became ${limit}`, [`${status} ${limit}`], [...new Set(said)])
  }

  for (const settings of [{ DATABASE_URL, REDIS_URL }, { DATABASE_URL }]) {
    await setLimit(settings, 100)
    await expectNext(429, 100)
    await setLimit(settings, RAISED_LIMIT)
    await expectNext(201, RAISED_LIMIT)
  }
  return () => {
    const refused = touched(cluster, from).filter(({ request, status }) => request.tenant === small && status === 429)
    hit(problems, 'request of the load was refused', refused.length - sent.refused)
    return { figures: `4 changes, then ${sent.refused} refused and ${sent.recorded} recorded`, problems }
  }
}
