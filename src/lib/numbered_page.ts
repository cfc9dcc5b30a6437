import { type TObject, type TProperties, Type } from '@sinclair/typebox'
import { defaultPageSize, maxPageSize, parsePageSize, parsePositive } from './cursor_page.ts'

/** A page by its number, as the interface has it for the history. */
export type NumberedPage = {
  /** The response repeats it, whatever its size. */
  page: bigint
  limit: number
}

const elseDefault = 'Anything else is served as the default.'

/** These schemas are for the documentation alone; a query is parsed from its text. */
export const numberedPageParameters = {
  page: Type.Integer({ minimum: 1, default: 1, description: `Page number, from 1 on. ${elseDefault}` }),
  limit: Type.Integer({
    minimum: 1,
    maximum: maxPageSize,
    default: defaultPageSize,
    description: `Results per page. More than the maximum is served as the maximum. ${elseDefault}`,
  }),
}

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

/** Page numbers are capped here: far beyond any last page, and still within what Postgres multiplies by a page size. */
const lastConceivablePage = 10 ** 15

/** A page or a limit that makes no sense gets its default, because the interface knows no error for them. */
export function parseNumberedPage(given: URLSearchParams): NumberedPage {
  return { page: parsePositive(given.getAll('page')) ?? 1n, limit: parsePageSize(given) }
}

export const clampPage = ({ page }: NumberedPage): number => Math.min(Number(page), lastConceivablePage)

const totalPagesOf = ({ limit }: NumberedPage, totalCount: number): number => Math.ceil(totalCount / limit)

/**
 * The body of a page, perhaps with more beside it. The JSON is written by hand because current_page may exceed what
 * JavaScript holds exactly.
 */
export function writeNumberedPage(asked: NumberedPage, totalCount: number, data: unknown[], more: object = {}): string {
  const { page, limit } = asked
  const pagination = `{"current_page":${page},"total_pages":${totalPagesOf(asked, totalCount)},"total_count":${totalCount},"per_page":${limit}}`
  const rest = Object.entries(more).map(([name, value]) => `,${JSON.stringify(name)}:${JSON.stringify(value)}`)
  return `{"data":${JSON.stringify(data)},"pagination":${pagination}${rest.join('')}}`
}

/** The RFC 8288 links to the pages around the requested one. */
export function linkPages(asked: NumberedPage, totalCount: number, addressOf: (page: bigint) => string): string {
  const { page } = asked
  const last = BigInt(Math.max(totalPagesOf(asked, totalCount), 1))
  const links: [string, bigint][] = [['first', 1n]]
  if (page > 1n) links.push(['prev', page > last ? last : page - 1n])
  if (page < last) links.push(['next', page + 1n])
  links.push(['last', last])
  return links.map(([rel, page]) => `<${addressOf(page)}>; rel="${rel}"`).join(', ')
}
