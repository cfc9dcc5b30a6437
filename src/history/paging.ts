import type { HistoryList, Paging } from './list.ts'
import { defaultLimit, maxLimit } from './schema.ts'

/** Reads page and limit; whatever is not one integer from 1 on counts as not given. */
export function readPaging(query: URLSearchParams): Paging {
  const limit = readInteger(query.getAll('limit')) ?? BigInt(defaultLimit)
  return {
    page: readInteger(query.getAll('page')) ?? 1n,
    limit: limit > maxLimit ? maxLimit : Number(limit),
  }
}

function readInteger(values: string[]): bigint | undefined {
  const [text = ''] = values
  if (values.length !== 1 || !/^\d+$/.test(text)) return undefined
  const number = BigInt(text)
  return number >= 1n ? number : undefined
}

/** The RFC 8288 links to the pages around this one. */
export function pagingLinks(path: string, { page, limit }: Paging, { totalPages }: HistoryList): string {
  const last = BigInt(Math.max(totalPages, 1))
  const links: [string, bigint][] = [['first', 1n]]
  if (page > 1n) links.push(['prev', page > last ? last : page - 1n])
  if (page < last) links.push(['next', page + 1n])
  links.push(['last', last])
  return links.map(([rel, number]) => `<${path}?page=${number}&limit=${limit}>; rel="${rel}"`).join(', ')
}
