// Compares the history that is recorded with the answers of those who wrote it.
import type postgres from 'postgres'
import { DEADLINE_MS } from './audit.ts'
import { compare, type Findings } from './findings.ts'
import type { Replica } from './post.ts'
import type { Author, WriteLedger } from './writes.ts'

/** All rows are compared with all acknowledgements so far, and the answers since `from` with the promises. */
export async function auditWrites(
  sql: postgres.Sql,
  { attempts, unanswered }: WriteLedger,
  from: number,
  author: Author,
  replica: Replica,
): Promise<Findings> {
  const problems: string[] = []
  const rows = await sql<{ id: number; commit: string; prompt: string }[]>`
    select h.id::int, h.commit_sha as commit, p.public_id as prompt
    from history_entries h join prompts p on p.id = h.prompt_id
    where p.public_id = any (${[author.prompt, author.linkedPrompt]}::text[])`
  const idsOf = Map.groupBy(rows, ({ commit }) => commit)
  const doubled = [...idsOf].filter(([, found]) => found.length > 1)
  compare(problems, 'entries recorded more than once', [], doubled.slice(0, 3))

  const acknowledged = attempts.filter(({ status }) => status === 200 || status === 201)
  const lost = acknowledged.filter(({ kind, commit, text }) => {
    const [entry] = idsOf.get(commit) ?? []
    if (kind === 'entry') return entry?.prompt !== author.prompt || entry.id !== JSON.parse(text).data.id
    return entry?.prompt !== author.linkedPrompt
  })
  compare(problems, 'acknowledged, and not in the history', [], lost.slice(0, 3))
  compare(problems, 'writes never acknowledged', 0, unanswered.length)

  for (const prompt of [author.prompt, author.linkedPrompt]) {
    const recorded = rows.filter((row) => row.prompt === prompt).length
    compare(problems, `total of the history of ${prompt}`, recorded, await readTotal(replica, author, prompt))
  }

  const recent = attempts.slice(from)
  const odd = recent.filter(({ status }) => ![0, 200, 201, 503].includes(status))
  compare(problems, 'answers of another kind', [], odd.slice(0, 3))
  const slowest = Math.round(Math.max(...recent.map(({ ms }) => ms)))
  if (slowest > DEADLINE_MS) problems.push(`a write took ${slowest} ms, more than ${DEADLINE_MS} ms`)
  const failed = recent.filter(({ status }) => status === 0 || status === 503).length
  const figures = `${rows.length} entries: lost ${lost.length}, twice ${doubled.length}; ${failed} writes failed, slowest ${slowest} ms`
  return { figures, problems }
}

async function readTotal({ url }: Replica, { key }: Author, prompt: string): Promise<number> {
  const headers = { authorization: `Bearer ${key}` }
  const answer = await fetch(`${url}/api/v1/prompts/${prompt}/history?limit=1`, { headers })
  return ((await answer.json()) as { pagination?: { total_count: number } }).pagination?.total_count ?? -1
}
