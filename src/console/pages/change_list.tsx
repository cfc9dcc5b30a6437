import { answerOf, api } from '../client/api.ts'
import { useScopes } from '../client/own_key.ts'
import { prefetch, useQuery } from '../client/query.ts'
import { href } from '../client/root.ts'
import { queryWith, usePlace } from '../client/router.ts'
import type { Schemas } from '../client/schemas.ts'
import { formatNumber } from '../parts/format.ts'
import { Await, Empty } from '../parts/states.tsx'
import { ChangeFilters, liveActions, readChangeFilters } from './change_filters.tsx'
import { Changes } from './changes.tsx'
import { readRange } from './ranges.ts'

type Asking<Answer> = [name: string, ask: () => Promise<Answer>]
type Action = Schemas['HistoryEntry']['action']
/** What both lists, that of changes and that of all entries, are narrowed down by. */
type Given = { limit?: number; page?: number; branch?: string; since?: string; until?: string }
type ChangeListProps = { prompt: string; repository: string | null }

export const changesPerPage = 50

/** A page of what the changes of a prompt did. */
export const askingImpact = (
  prompt: string,
  given: Given & { action?: ('deployed' | 'pr_merged')[] } = {},
): Asking<Schemas['ImpactPage']> => {
  const query = { limit: changesPerPage, page: 1, ...given }
  return [
    `impact of ${prompt} ${JSON.stringify(query)}`,
    () => answerOf(api.GET('/api/v1/prompts/{prompt_id}/impact', { params: { path: { prompt_id: prompt }, query } })),
  ]
}

const askingHistory = (prompt: string, given: Given & { action: Action[] }): Asking<Schemas['HistoryPage']> => {
  const query = { limit: changesPerPage, ...given }
  return [
    `history of ${prompt} ${JSON.stringify(query)}`,
    () => answerOf(api.GET('/api/v1/prompts/{prompt_id}/history', { params: { path: { prompt_id: prompt }, query } })),
  ]
}

/** The page of changes that the address names. */
export const readPage = (query: URLSearchParams): number =>
  Math.max(1, Number.parseInt(query.get('page') ?? '1', 10) || 1)

/** The changes that went live, each with what it did; or, where the filter says so, other entries of the history. */
export function ChangeList({ prompt, repository }: ChangeListProps) {
  const { query } = usePlace()
  const mayReadHistory = useScopes().includes('history:read')
  const filters = readChangeFilters(query)
  const { since, until } = readRange(query, new Date())
  const given = {
    page: readPage(query),
    ...(filters.branch ? { branch: filters.branch } : {}),
    ...(filters.time ? { since: since.toISOString(), ...(until ? { until: until.toISOString() } : {}) } : {}),
  }
  const actions = filters.action ? (filters.action.split(',') as Action[]) : []
  const areLive = actions.every((action) => liveActions.includes(action))
  const props = { prompt, repository, given, isFiltered: Object.values(filters).some((filter) => filter !== '') }
  return (
    <section>
      <div class="page-head">
        <h2>Changes</h2>
        <div class="actions">
          <ChangeFilters {...filters} mayReadHistory={mayReadHistory} />
          <a href={href(`/prompts/${encodeURIComponent(prompt)}/compare`)}>Compare two</a>
        </div>
      </div>
      {areLive || !mayReadHistory ? (
        <LiveChanges {...props} actions={actions.filter((action) => liveActions.includes(action))} />
      ) : (
        <Entries {...props} actions={actions} />
      )}
    </section>
  )
}

type ListProps = ChangeListProps & { given: Given; isFiltered: boolean; actions: Action[] }

function LiveChanges({ prompt, repository, given, isFiltered, actions }: ListProps) {
  const ask = (page: number) =>
    askingImpact(prompt, {
      ...given,
      page,
      ...(actions.length > 0 ? { action: actions as ('deployed' | 'pr_merged')[] } : {}),
    })
  return (
    <Await query={useQuery(...ask(given.page ?? 1))}>
      {({ data, pagination }) => (
        <>
          {data.length === 0 && <Empty title={isFiltered ? 'No change is like that' : 'None yet'} />}
          {data.length > 0 && (
            <Changes
              prompt={prompt}
              repository={repository}
              rows={data.map((impact) => ({ change: impact.change, impact }))}
            />
          )}
          <PageLinks pagination={pagination} ask={ask} />
        </>
      )}
    </Await>
  )
}

/** Entries of any action. Those of them that went live are shown with what they did. */
function Entries({ prompt, repository, given, actions }: ListProps) {
  const ask = (page: number) => askingHistory(prompt, { ...given, page, action: actions })
  const query = useQuery(...ask(given.page ?? 1))
  const times = (query.data?.data ?? [])
    .filter(({ action }) => liveActions.includes(action))
    .map(({ created_at }) => created_at)
  const [until, since] = [times[0], times.at(-1)]
  // Between the first and the last change of the page there is none that is not on it, but for another branch.
  const { branch } = given
  const live = askingImpact(prompt, { limit: 100, ...(branch && { branch }), ...(since && until && { since, until }) })
  const impacts = useQuery(live[0], since ? live[1] : undefined).data?.data ?? []
  return (
    <Await query={query}>
      {({ data, pagination }) => (
        <>
          {data.length === 0 && <Empty title="No change is like that" />}
          {data.length > 0 && (
            <Changes
              prompt={prompt}
              repository={repository}
              rows={data.map((change) => ({ change, impact: impacts.find((one) => one.change.id === change.id) }))}
            />
          )}
          <PageLinks pagination={pagination} ask={ask} />
        </>
      )}
    </Await>
  )
}

type PageLinksProps = {
  pagination: Schemas['Pagination']
  ask(page: number): Asking<unknown>
  /** What the address of every page has, too. */
  kept?: Record<string, string>
}

/** The ways to the pages around the one that is shown, by the number in the address. */
export function PageLinks({ pagination: { current_page: page, total_pages: pages }, ask, kept }: PageLinksProps) {
  if (pages < 2) return null
  const linkTo = (number: number, text: string) => {
    const reach = () => void prefetch(...ask(number))
    return (
      <a
        href={`${location.pathname}${queryWith({ ...kept, page: number === 1 ? undefined : String(number) })}`}
        onPointerEnter={reach}
        onFocus={reach}
      >
        {text}
      </a>
    )
  }
  return (
    <nav class="pager" aria-label="Pages of changes">
      {page > 1 && linkTo(Math.min(page - 1, pages), 'Newer')}
      <span class="muted">
        {formatNumber(page)} of {formatNumber(pages)}
      </span>
      {page < pages && linkTo(page + 1, 'Older')}
    </nav>
  )
}
