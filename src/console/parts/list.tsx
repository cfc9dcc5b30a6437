import type { ComponentChildren } from 'preact'
import { useLayoutEffect } from 'preact/hooks'
import type { Question } from '../client/api.ts'
import { prefetch, useQuery } from '../client/query.ts'
import { hrefWith, usePlace } from '../client/router.ts'
import { focusWithout } from './focus.ts'
import { formatNumber } from './format.ts'
import { Await } from './states.tsx'
import { Table, type TableProps } from './table.tsx'

type ListProps<Row> = Omit<TableProps<Row>, 'rows'> & {
  /** The page that begins at a cursor, or the first one. */
  pageAt(cursor: string | null): Question<{ data: Row[]; pagination: { next_cursor: string | null } }>
  /** What stands in the place of a page without rows, which may not be the last one. */
  empty(isLast: boolean): ComponentChildren
  keepPrevious?: boolean
  /** The words for the ways to the first and to the next page; those of a list in the order of time, unless given. */
  words?: [first: string, next: string]
}

/** A list, page by page, by the cursor in the address. */
export function List<Row>({ pageAt, empty, keepPrevious, words = ['Newest', 'Older'], ...table }: ListProps<Row>) {
  const cursor = usePlace().query.get('cursor')
  const query = useQuery(pageAt(cursor), { keepPrevious })
  useKeptFocus()
  return (
    <>
      <Found caption={table.caption} count={query.data?.data.length} />
      <Await query={query}>
        {({ data, pagination: { next_cursor: next } }) => (
          <>
            {data.length === 0 ? empty(next === null) : <Table {...table} rows={data} />}
            {(cursor !== null || next !== null) && (
              <nav class="row pager" aria-label="Pages">
                {cursor !== null && <a href={hrefWith({ cursor: undefined })}>{words[0]}</a>}
                {next !== null && <PageLink href={hrefWith({ cursor: next })} page={pageAt(next)} text={words[1]} />}
              </nav>
            )}
          </>
        )}
      </Await>
    </>
  )
}

/** A change may take away the button that sent it. */
function useKeptFocus(): void {
  const row = document.activeElement?.closest('tr')
  useLayoutEffect(() => focusWithout(row))
}

/** Says how much a list has after a filter was changed, to those who do not see it change. */
export const Found = ({ caption, count }: { caption: string; count: number | undefined }) => (
  <p class="visually-hidden" role="status">
    {count !== undefined && `${caption}: ${count === 0 ? 'none' : `${formatNumber(count)} shown`}`}
  </p>
)

/** A way to a page of a list, which is asked for as soon as somebody reaches for it. */
export function PageLink({ href, page, text }: { href: string; page: Question<unknown>; text: string }) {
  const reach = () => void prefetch(page)
  return (
    <a href={href} onPointerEnter={reach} onFocus={reach}>
      {text}
    </a>
  )
}
