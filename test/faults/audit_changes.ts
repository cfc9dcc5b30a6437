// Compares what each replica says of the changes of a prompt with the rows of its signals.
import type { Cluster } from './cluster.ts'
import { compare, type Findings } from './findings.ts'
import type { Replica, Tenant } from './post.ts'

type Sums = { total: number; by_commit: number }

/** Every signal came after the first change of its prompt, so that each belongs to a change. */
export async function auditChanges({ sql, replicas }: Cluster, tenants: Tenant[]): Promise<Findings> {
  const problems: string[] = []
  for (const tenant of tenants) {
    const [rows] = await sql<[Sums]>`
      select count(*)::int as total, count(s.metadata -> 'commit_sha')::int as by_commit
      from signals s join prompts p on p.id = s.prompt_id
      where p.public_id = ${tenant.prompt}`
    for (const replica of replicas) {
      compare(problems, `signals of all changes, by ${replica.name}`, rows, await readSums(replica, tenant))
    }
  }
  return { figures: `changes with other sums ${problems.length}`, problems }
}

async function readSums({ url }: Replica, { key, prompt }: Tenant): Promise<Sums> {
  const headers = { authorization: `Bearer ${key}` }
  const answer = await fetch(`${url}/api/v1/prompts/${prompt}/impact?limit=100`, { headers })
  const { data = [] } = (await answer.json()) as { data?: { signals: Sums }[] }
  const sumOf = (name: keyof Sums) => data.reduce((sum, { signals }) => sum + signals[name], 0)
  return { total: sumOf('total'), by_commit: sumOf('by_commit') }
}
