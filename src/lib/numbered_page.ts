import { type TObject, type TProperties, Type } from '@sinclair/typebox'
import { defaultPageSize, limitParam, pageParam } from './params.ts'

type NumberedPage = { page: number; limit: number }

export const numberedPageParams = { page: pageParam, limit: limitParam }

export const numberedPageOf = (
  item: TObject,
  title: string,
  example: object[],
  more: { properties: TProperties; example: object } = { properties: {}, example: {} },
) =>
  Type.Object(
    {
      data: Type.Array(item),
      pagination: Type.Object(
        {
          current_page: Type.Integer({ description: 'The page returned' }),
          total_pages: Type.Integer({ description: 'Number of pages at this per_page' }),
          total_count: Type.Integer({ description: 'Number of items on all pages' }),
          per_page: Type.Integer({ description: 'Page size used' }),
        },
        { title: 'Pagination' },
      ),
      ...more.properties,
    },
    {
      title,
      examples: [
        {
          data: example,
          pagination: { current_page: 1, total_pages: 1, total_count: example.length, per_page: defaultPageSize },
          ...more.example,
        },
      ],
    },
  )

/** Beyond any last page, and small enough to be multiplied by a page size. */
const lastConceivablePage = 10 ** 13

export const offsetOf = ({ page, limit }: NumberedPage): number => (Math.min(page, lastConceivablePage) - 1) * limit

const totalPagesOf = ({ limit }: NumberedPage, totalCount: number): number => Math.ceil(totalCount / limit)

export function writeNumberedPage(asked: NumberedPage, totalCount: number, data: unknown[], more: object = {}): string {
  const { page, limit } = asked
  const pagination = {
    current_page: page,
    total_pages: totalPagesOf(asked, totalCount),
    total_count: totalCount,
    per_page: limit,
  }
  return JSON.stringify({ data, pagination, ...more })
}

/** Proxies and clients reject longer headers. */
export const maxLinkLength = 4_096

/** The RFC 8288 links to the pages around the requested one, fewer of them if they would be too long. */
export function linkPages(asked: NumberedPage, totalCount: number, addressOf: (page: number) => string): string {
  const { page } = asked
  const last = Math.max(totalPagesOf(asked, totalCount), 1)
  const links: [string, number][] = [['first', 1]]
  if (page > 1) links.push(['prev', Math.min(page - 1, last)])
  if (page < last) links.push(['next', page + 1])
  links.push(['last', last])
  const written = links.map(([rel, page]) => [rel, `<${addressOf(page)}>; rel="${rel}"`] as const)
  for (const rels of [['first', 'prev', 'next', 'last'], ['prev', 'next'], ['next'], ['prev']]) {
    const header = written.flatMap(([rel, link]) => (rels.includes(rel) ? link : [])).join(', ')
    if (header !== '' && header.length <= maxLinkLength) return header
  }
  return written[0]?.[1] ?? ''
}
