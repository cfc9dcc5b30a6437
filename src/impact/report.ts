import { maxPageSize } from '../lib/params.ts'
import type { Impact } from './schema.ts'
import type { ImpactSource, PromptName } from './source.ts'

export type ReportedChange = Impact & { prompt: PromptName }

/** Which changes a report shows: those that went live from `since` on, of one prompt, pull request or commit, or of all. */
export type ReportQuery = {
  since: Date
  prompt: string | null
  /** The number of a pull request, or its address. */
  pullRequest: string | null
  /** A commit in lower case, or its first characters. */
  commit: string | null
}

/** Reads the changes of a report: bad news first, then the other decided ones, newest first. */
export async function readReport(source: ImpactSource, query: ReportQuery): Promise<ReportedChange[]> {
  const prompts = query.prompt === null ? listChanged(source, query.since) : [query.prompt]
  const found: ReportedChange[] = []
  for await (const prompt of prompts) found.push(...(await readChanges(source, prompt, query.since)))
  return found.filter((change) => isWanted(change, query)).sort(compare)
}

/** The prompts with a change since then. */
async function* listChanged(source: ImpactSource, since: Date): AsyncGenerator<string> {
  for (let cursor: string | null = ''; cursor !== null; ) {
    const query = new URLSearchParams({ sort: 'last_change', limit: `${maxPageSize}`, ...(cursor ? { cursor } : {}) })
    const page: Awaited<ReturnType<ImpactSource['listPrompts']>> = await source.listPrompts(query)
    for (const { prompt, latest } of page.data) {
      if (!latest || new Date(latest.change.created_at) < since) return
      yield prompt.id
    }
    cursor = page.nextCursor
  }
}

async function readChanges(source: ImpactSource, id: string, since: Date): Promise<ReportedChange[]> {
  const found: ReportedChange[] = []
  for (let page = 1; ; page += 1) {
    const query = new URLSearchParams({ since: since.toISOString(), limit: `${maxPageSize}`, page: `${page}` })
    const { prompt, totalCount, data } = await source.readImpact(id, query)
    found.push(...data.map((impact) => ({ prompt: { id: prompt.id, name: prompt.name }, ...impact })))
    if (page * maxPageSize >= totalCount) return found
  }
}

function isWanted({ change }: Impact, { pullRequest, commit }: ReportQuery): boolean {
  const isOfPullRequest = [`${change.pr_number}`, change.pr_url].includes(pullRequest)
  const isOfCommit = commit !== null && change.commit_sha.toLowerCase().startsWith(commit)
  return (pullRequest === null || isOfPullRequest) && (commit === null || isOfCommit)
}

const order = ['worse', 'better', 'same', 'undecided', null]

const compare = (a: Impact, b: Impact): number =>
  order.indexOf(a.verdict) - order.indexOf(b.verdict) || (a.change.created_at < b.change.created_at ? 1 : -1)
