import { get, type QueryOf, type Question, type Schemas } from '../client/api.ts'
import { useScopes } from '../client/organisation.ts'
import { type Query, useQuery } from '../client/query.ts'
import { hrefWith, usePlace } from '../client/router.ts'
import { Choice, TextFilter } from '../parts/filters.tsx'
import { formatNumber } from '../parts/format.ts'
import { Found, PageLink } from '../parts/list.tsx'
import { Await, Note } from '../parts/states.tsx'
import { hrefOfPrompt } from '../parts/text.tsx'
import { type ChangeRow, Changes, toRow } from './changes.tsx'
import { readRange } from './ranges.ts'

type Action = Schemas['HistoryEntry']['action']
type LiveAction = 'deployed' | 'pr_merged'

export const changesPerPage = 50

/** A page of what the changes of a prompt did. */
export const getImpact = (prompt: string, query: QueryOf<'/api/v1/prompts/{prompt_id}/impact'> = {}) =>
  get('/api/v1/prompts/{prompt_id}/impact', {
    path: { prompt_id: prompt },
    query: { limit: changesPerPage, page: 1, ...query },
  })

/** The page of changes that the address names. */
export const readPage = (query: URLSearchParams): number =>
  Math.max(1, Number.parseInt(query.get('page') ?? '1', 10) || 1)

const isLive = (action: Action): action is LiveAction => action === 'deployed' || action === 'pr_merged'

type ChangeListProps = { prompt: string; repository: string | null }

/** The changes that went live, each with what it did; or, where the filter says so, other entries of the history. */
export function ChangeList(props: ChangeListProps) {
  const { query } = usePlace()
  const mayReadHistory = useScopes().includes('history:read')
  const actions = (query.get('action') ?? '').split(',').filter((action) => action !== '') as Action[]
  return (
    <section>
      <div class="row page-head">
        <h2>Changes</h2>
        <div class="row actions">
          <Choice label="Action" name="action" options={mayReadHistory ? allActions : liveActions} />
          <Choice label="Time" name="time" options={times} />
          <TextFilter label="Branch" name="branch" maxLength={255} />
          <a href={`${hrefOfPrompt(props.prompt)}/compare`}>Compare</a>
        </div>
      </div>
      {actions.every(isLive) || !mayReadHistory ? (
        <LiveChanges {...props} actions={actions.filter(isLive)} />
      ) : (
        <Entries {...props} actions={actions} />
      )}
    </section>
  )
}

const times = { '': 'any time', chart: 'as in the chart' }

const liveActions = { '': 'went live', deployed: 'deployed', pr_merged: 'merged' }

const allActions = {
  ...liveActions,
  pr_opened: 'opened',
  pr_closed: 'closed',
  'deployed,pr_merged,pr_opened,pr_closed': 'everything',
}

/** What both lists, that of changes and that of all entries, are narrowed down by. */
function readFilters(query: URLSearchParams) {
  const { since, until } = readRange(query, new Date())
  const isOfChart = Boolean(query.get('time'))
  return {
    branch: query.get('branch'),
    since: isOfChart ? since.toISOString() : null,
    until: (isOfChart && until?.toISOString()) || null,
  }
}

function LiveChanges({ actions, ...props }: ChangeListProps & { actions: LiveAction[] }) {
  const { query } = usePlace()
  const pageAt = (page: number) => getImpact(props.prompt, { page, ...readFilters(query), action: actions })
  const impacts = useQuery(pageAt(readPage(query)))
  return <ChangePage {...props} query={impacts} rows={impacts.data?.data.map(toRow)} pageAt={pageAt} />
}

/** Entries of any action. Those of them that went live are shown with what they did. */
function Entries({ actions, ...props }: ChangeListProps & { actions: Action[] }) {
  const { query } = usePlace()
  const path = { prompt_id: props.prompt }
  const filters = { limit: changesPerPage, ...readFilters(query), action: actions }
  const pageAt = (page: number) =>
    get('/api/v1/prompts/{prompt_id}/history', { path, query: { page, include: 'title', ...filters } })
  const entries = useQuery(pageAt(readPage(query)))
  const live = entries.data?.data.filter(({ action }) => isLive(action)) ?? []
  const [until, since] = [live[0]?.created_at, live.at(-1)?.created_at]
  // Between the first and the last change of the page there is none that is not on it, but for another branch.
  const asked = since && until && getImpact(props.prompt, { limit: 100, branch: filters.branch, since, until })
  const impacts = useQuery(asked || undefined).data?.data
  const rows = entries.data?.data.map((change) => ({
    change,
    impact: impacts?.find((impact) => impact.change.id === change.id),
  }))
  return <ChangePage {...props} query={entries} rows={rows} pageAt={pageAt} />
}

type PageAt = (page: number) => Question<unknown>
type ChangePageProps = ChangeListProps & {
  query: Query<{ pagination: Schemas['Pagination'] }>
  rows: ChangeRow[] | undefined
  pageAt: PageAt
}

function ChangePage({ prompt, repository, query, rows = [], pageAt }: ChangePageProps) {
  const { query: filters } = usePlace()
  const isFiltered = ['action', 'branch', 'time', 'page'].some((name) => filters.get(name))
  return (
    <>
      <Found caption="Changes" count={query.data && rows.length} />
      <Await query={query}>
        {({ pagination }) => (
          <>
            {rows.length === 0 ? (
              <Note title={isFiltered ? 'No changes match' : 'No changes yet'} />
            ) : (
              <Changes prompt={prompt} repository={repository} rows={rows} />
            )}
            <PageLinks pagination={pagination} pageAt={pageAt} />
          </>
        )}
      </Await>
    </>
  )
}

type PageLinksProps = {
  pagination: Schemas['Pagination']
  pageAt: PageAt
  /** What the address of every page has, too. */
  kept?: Record<string, string>
}

/** The ways to the pages around the one that is shown, by the number in the address. */
export function PageLinks({ pagination: { current_page: page, total_pages: pages }, pageAt, kept }: PageLinksProps) {
  if (pages < 2) return null
  const linkTo = (number: number, text: string) => {
    const page = number === 1 ? undefined : String(number)
    return <PageLink href={hrefWith({ ...kept, page })} page={pageAt(number)} text={text} />
  }
  return (
    <nav class="row pager" aria-label="Pages of changes">
      {page > 1 && linkTo(Math.min(page - 1, pages), 'Newer')}
      <span class="muted">
        {formatNumber(page)} of {formatNumber(pages)}
      </span>
      {page < pages && linkTo(page + 1, 'Older')}
    </nav>
  )
}
