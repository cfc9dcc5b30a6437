import { parseInstant } from '../lib/times.ts'
import { actions, defaultLimit, maxLimit } from './schema.ts'

/** What part of a history is asked for. */
export type HistoryQuery = {
  /** Of any size, since it is shown again in the answer. */
  page: bigint
  limit: number
  /** Null for all. */
  actions: string[] | null
  branch: string | null
  since: Date | null
  until: Date | null
}

/** Reads the query; a value that makes no sense counts as not given, because a query never fails. */
export function readQuery(query: URLSearchParams): HistoryQuery {
  const limit = readInteger(query.getAll('limit')) ?? BigInt(defaultLimit)
  return {
    page: readInteger(query.getAll('page')) ?? 1n,
    limit: limit > maxLimit ? maxLimit : Number(limit),
    actions: readActions(query.getAll('action')),
    branch: readBranch(query.getAll('branch')),
    since: readTime(query.getAll('since')),
    until: readTime(query.getAll('until')),
  }
}

/** Given twice, nobody knows which is meant. */
const only = (values: string[]): string => (values.length === 1 ? (values[0] as string) : '')

function readInteger(values: string[]): bigint | undefined {
  const text = only(values)
  if (!/^\d+$/.test(text)) return undefined
  const number = BigInt(text)
  return number >= 1n ? number : undefined
}

function readActions(values: string[]): string[] | null {
  const given = new Set(values.flatMap((value) => value.split(',')))
  const known = actions.filter((action) => given.has(action))
  return known.length > 0 && known.length < actions.length ? known : null
}

/** Postgres has no text with this character in it, so no branch has such a name. */
const readBranch = (values: string[]): string | null => (only(values).includes('\0') ? null : only(values) || null)

function readTime(values: string[]): Date | null {
  // A plus that was not encoded arrives as a blank.
  const text = only(values).replace(' ', '+')
  return parseInstant(/^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00:00Z` : text) ?? null
}

/** The query as a caller would write it. */
function writeQuery({ page, limit, actions, branch, since, until }: HistoryQuery): string {
  const query = new URLSearchParams({ page: String(page), limit: String(limit) })
  if (actions) query.set('action', actions.join(','))
  if (branch !== null) query.set('branch', branch)
  if (since) query.set('since', since.toISOString())
  if (until) query.set('until', until.toISOString())
  return query.toString()
}

/** The RFC 8288 links to the pages around the one asked for. */
export function pagingLinks(prompt: string, query: HistoryQuery, totalPages: number): string {
  const { page } = query
  const last = BigInt(Math.max(totalPages, 1))
  const links: [string, bigint][] = [['first', 1n]]
  if (page > 1n) links.push(['prev', page > last ? last : page - 1n])
  if (page < last) links.push(['next', page + 1n])
  links.push(['last', last])
  const address = (page: bigint) => `/api/v1/prompts/${prompt}/history?${writeQuery({ ...query, page })}`
  return links.map(([rel, page]) => `<${address(page)}>; rel="${rel}"`).join(', ')
}
