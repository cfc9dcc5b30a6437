import { createHash } from 'node:crypto'
import { systemClock } from '../../src/clock.ts'
import { recordEntry } from '../../src/history/record.ts'
import { type Prompt, requirePrompt } from '../../src/prompts/find.ts'
import { rollUpSignals } from '../../src/stats/store.ts'
import { median } from '../compare.ts'
import type { Context } from '../context.ts'
import { measureExport } from '../export.ts'
import { createTenants, promptOf, unreachableLimit } from '../fixtures.ts'
import type { Request } from '../load.ts'

const few = 10_000
const pageSize = 100
/** Requests of each kind, alternating between the two prompts. */
const requestsEach = 200
/** Signals that one statement inserts or rolls up. */
const step = 100_000
/** Changes in the year. Half of the signals name the live one. */
const changes = 200
const changesPerPage = 25

export const [since, until] = [Date.UTC(2025, 10, 1), Date.UTC(2026, 10, 1)]

/** Compares a prompt with ten million signals of a year to one with ten thousand: pages, the year by day, changes. */
export async function measureSignalReads(context: Context): Promise<void> {
  const { database, report, plan } = context
  const many = plan.signalsToRead
  const shape = { organisations: 2, promptsEach: 1, monthlyLimit: unreachableLimit }
  const [small, large] = (await createTenants(database, shape)) as [Request, Request]
  await fill(context, small, few)
  await fill(context, large, many)
  await database.sql.script('vacuum analyze signals, signal_counts, signal_commit_counts')
  const server = await context.serve()

  async function ask({ path, key }: Request, query: string, isRight: (body: Answer) => boolean): Promise<Timed> {
    const askedAt = performance.now()
    const answer = await fetch(`${server.url}${path}${query}`, { headers: { authorization: `Bearer ${key}` } })
    const body = (await answer.json()) as Answer
    const ms = performance.now() - askedAt
    if (!isRight(body)) report.problems.push(`${path}${query} answers ${JSON.stringify(body).slice(0, 200)}`)
    return { ms, body }
  }

  /** Reads a page from a random time of the year, and the one after it by its cursor. */
  async function readPages(request: Request): Promise<number[]> {
    const start = new Date(since + (0.1 + 0.9 * Math.random()) * (until - since)).toISOString()
    const isPage = ({ data }: Answer) => data?.length === pageSize
    const query = `?limit=${pageSize}&until=${start}`
    const first = await ask(request, query, isPage)
    const second = await ask(request, `${query}&cursor=${first.body.pagination?.next_cursor}`, isPage)
    return [first.ms, second.ms]
  }

  const year = `?tz=Europe/London&since=${new Date(since).toISOString()}&until=${new Date(until).toISOString()}`
  const readStats = async (request: Request, total: number): Promise<number[]> => {
    const stats = { ...request, path: request.path.replace('/signals', '/stats') }
    const { ms } = await ask(stats, year, ({ data, totals }) => data?.length === 365 && totals?.total === total)
    return [ms]
  }

  const readImpact = async (request: Request): Promise<number[]> => {
    const impact = { ...request, path: request.path.replace('/signals', '/impact') }
    const page = 1 + Math.floor(Math.random() * (changes / changesPerPage - 1))
    const isPage = ({ data }: Answer) => data?.length === changesPerPage
    return [(await ask(impact, `?page=${page}&limit=${changesPerPage}`, isPage)).ms]
  }

  const times = {
    impact: [] as number[],
    pagesFew: [] as number[],
    pagesMany: [] as number[],
    statsFew: [] as number[],
    statsMany: [] as number[],
  }
  // The first quarter warms up the service and the cache of Postgres.
  for (let round = -requestsEach / 4; round < requestsEach; round += 1) {
    const taken = [
      await readPages(small),
      await readPages(large),
      await readStats(small, few),
      await readStats(large, many),
      await readImpact(large),
    ] as const
    if (round < 0) continue
    times.pagesFew.push(...taken[0])
    times.pagesMany.push(...taken[1])
    times.statsFew.push(...taken[2])
    times.statsMany.push(...taken[3])
    times.impact.push(...taken[4])
  }
  await measureExport(context, server, large, many)
  await server.stop()

  const rowOf = (name: string, taken: number[]) => ({
    name,
    requestsPerSecond: 1000 / (taken.reduce((sum, ms) => sum + ms, 0) / taken.length),
    p50Ms: median(taken),
    p99Ms: taken.toSorted((a, b) => a - b)[Math.floor(taken.length * 0.99)] as number,
    errors: 0,
    residentMb: null,
  })
  const [of, ofFew] = [`of ${many.toLocaleString('en-GB')} signals`, `of ${few.toLocaleString('en-GB')}`]
  report.rows.push(
    rowOf(`pages of 100 anywhere ${of}, one by one`, times.pagesMany),
    rowOf(`stats of a year by day ${of}, one by one`, times.statsMany),
    rowOf(`impact of ${changesPerPage} changes ${of}, one by one`, times.impact),
  )
  report.targets.push(
    {
      name: `page of 100 anywhere ${of} ÷ ${ofFew}`,
      value: median(times.pagesMany) / median(times.pagesFew),
      atMost: 1.3,
    },
    { name: `stats of a year by day ${of}, ms`, value: median(times.statsMany), atMost: 30 },
    {
      name: `stats of a year by day ${of} ÷ ${ofFew}`,
      value: median(times.statsMany) / median(times.statsFew),
      atMost: 2,
    },
    { name: `impact of ${changesPerPage} changes ${of}, ms`, value: median(times.impact), atMost: 40 },
  )
}

type Answer = { data?: unknown[]; totals?: { total: number }; pagination?: { next_cursor: string | null } }
type Timed = { ms: number; body: Answer }

const commitOf = (index: number): string => createHash('sha1').update(String(index)).digest('hex')

/** Inserts changes and signals, and rolls the signals up. */
export async function fill(context: Context, request: Request, number: number): Promise<void> {
  const prompt = await insertSignals(context, request, number)
  while ((await rollUpSignals(context.database.sql, prompt, step)) === step);
}

/** Inserts changes and signals, evenly over the year, without rolling them up. */
export async function insertSignals({ database }: Context, request: Request, number: number): Promise<Prompt> {
  const { sql } = database
  const prompt = await requirePrompt(sql, promptOf(request))
  const stepMs = (until - since) / number
  const changeMs = (until - since) / changes
  const entries = Array.from({ length: changes }, (_, index) => ({
    action: 'deployed' as const,
    user: { name: 'Ada', email: 'ada@example.com' },
    commit_sha: commitOf(index),
    branch_name: 'main',
    created_at: new Date(since + index * changeMs + 1).toISOString(),
  }))
  for (const entry of entries) await recordEntry(database, systemClock, prompt, entry)
  for (let from = 0; from < number; from += step) {
    await sql`
      insert into signals (organisation_id, prompt_id, value, metadata, created_at)
      select
        ${prompt.organisationId}, ${prompt.id}, case when n % 4 = 0 then 'negative' else 'positive' end,
        jsonb_build_object('model', 'gpt-' || n % 3, 'session', md5(n::text)) || case
          when n % 2 = 0 then '{}'
          else jsonb_build_object('commit_sha', (${entries.map(({ commit_sha }) => commit_sha)}::text[])[
            1 + (n * ${stepMs}::float8 / ${changeMs}::float8)::integer % ${changes}
          ])
        end,
        to_timestamp((${since}::float8 + n * ${stepMs}::float8) / 1000)
      from generate_series(${from}::bigint, ${Math.min(from + step, number) - 1}::bigint) n`
  }
  return prompt
}
