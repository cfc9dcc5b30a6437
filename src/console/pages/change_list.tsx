import { answerOf, api } from '../client/api.ts'
import { useScopes } from '../client/own_key.ts'
import { prefetch, useQuery } from '../client/query.ts'
import { href } from '../client/root.ts'
import { queryWith, usePlace } from '../client/router.ts'
import type { Schemas } from '../client/schemas.ts'
import { formatNumber } from '../parts/format.ts'
import { Await, Empty } from '../parts/states.tsx'
import { ChangeFilters, type Filters, readChangeFilters } from './change_filters.tsx'
import { Changes } from './changes.tsx'
import { readRange } from './ranges.ts'

type Impact = Schemas['Impact']
type ChangeListProps = { prompt: string; repository: string | null }

const pageSize = 50

/** A page of what the changes of a prompt did. */
export const askingImpact = (prompt: string, page: number): [string, () => Promise<Schemas['ImpactPage']>] => [
  `impact of ${prompt} ${page}`,
  () =>
    answerOf(
      api.GET('/api/v1/prompts/{prompt_id}/impact', {
        params: { path: { prompt_id: prompt }, query: { limit: pageSize, page } },
      }),
    ),
]

/** The changes that went live; with a filter, what the history has of it, with what is known of each. */
export function ChangeList({ prompt, repository }: ChangeListProps) {
  const { query } = usePlace()
  const filters = readChangeFilters(query)
  const page = Math.max(1, Number.parseInt(query.get('page') ?? '1', 10) || 1)
  const impacts = useQuery(...askingImpact(prompt, page))
  const mayFilter = useScopes().includes('history:read')
  const isFiltered = mayFilter && Object.values(filters).some((filter) => filter !== '')
  return (
    <section>
      <div class="page-head">
        <h2>Changes</h2>
        <div class="actions">
          {mayFilter && <ChangeFilters {...filters} />}
          <a href={href(`/prompts/${encodeURIComponent(prompt)}/compare`)}>Compare two</a>
        </div>
      </div>
      <Await query={impacts}>
        {({ data, pagination }) =>
          isFiltered ? (
            <Filtered prompt={prompt} repository={repository} impacts={data} filters={filters} />
          ) : (
            <>
              {data.length === 0 && <Empty title="None yet" />}
              {data.length > 0 && (
                <Changes
                  prompt={prompt}
                  repository={repository}
                  rows={data.map((impact) => ({ change: impact.change, impact }))}
                />
              )}
              <PageLinks page={page} pages={pagination.total_pages} prompt={prompt} />
            </>
          )
        }
      </Await>
    </section>
  )
}

function PageLinks({ page, pages, prompt }: { page: number; pages: number; prompt: string }) {
  if (pages < 2) return null
  const linkTo = (number: number, text: string) => {
    const reach = () => void prefetch(...askingImpact(prompt, number))
    return (
      <a
        href={`${location.pathname}${queryWith({ page: number === 1 ? undefined : String(number) })}`}
        onPointerEnter={reach}
        onFocus={reach}
      >
        {text}
      </a>
    )
  }
  return (
    <nav class="pager" aria-label="Pages of changes">
      {page > 1 && linkTo(page - 1, 'Newer')}
      <span class="muted">
        {formatNumber(page)} of {formatNumber(pages)}
      </span>
      {page < pages && linkTo(page + 1, 'Older')}
    </nav>
  )
}

type FilteredProps = ChangeListProps & { impacts: Impact[]; filters: Filters }

function Filtered({ prompt, repository, impacts, filters: { action, branch, time } }: FilteredProps) {
  const { since, until } = readRange(usePlace().query, new Date())
  const given = {
    limit: pageSize,
    action: (action || 'deployed,pr_merged').split(',') as Schemas['HistoryEntry']['action'][],
    ...(branch ? { branch } : {}),
    ...(time ? { since: since.toISOString(), ...(until ? { until: until.toISOString() } : {}) } : {}),
  }
  const query = useQuery(`history of ${prompt} ${JSON.stringify(given)}`, () =>
    answerOf(api.GET('/api/v1/prompts/{prompt_id}/history', { params: { path: { prompt_id: prompt }, query: given } })),
  )
  return (
    <Await query={query}>
      {({ data }) =>
        data.length === 0 ? (
          <Empty title="No change is like that" />
        ) : (
          <Changes
            prompt={prompt}
            repository={repository}
            rows={data.map((change) => ({ change, impact: impacts.find((one) => one.change.id === change.id) }))}
          />
        )
      }
    </Await>
  )
}
