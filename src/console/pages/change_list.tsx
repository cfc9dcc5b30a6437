import { useState } from 'preact/hooks'
import { answerOf, api } from '../client/api.ts'
import { useScopes } from '../client/own_key.ts'
import { prefetch, useQuery } from '../client/query.ts'
import { href } from '../client/root.ts'
import { changeQuery, queryWith, usePlace } from '../client/router.ts'
import type { Schemas } from '../client/schemas.ts'
import { Field, Select } from '../parts/field.tsx'
import { formatNumber } from '../parts/format.ts'
import { Await, Empty } from '../parts/states.tsx'
import { Changes } from './changes.tsx'

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

const actions: [string, string][] = [
  ['', 'went live'],
  ['deployed', 'deployed'],
  ['pr_merged', 'merged'],
  ['pr_opened', 'opened'],
  ['pr_closed', 'closed'],
  ['deployed,pr_merged,pr_opened,pr_closed', 'everything'],
]

/** The changes that went live; with a filter, what the history has of it, with what is known of each. */
export function ChangeList({ prompt, repository }: ChangeListProps) {
  const { query } = usePlace()
  const [action, branch] = [query.get('action') ?? '', query.get('branch') ?? '']
  const page = Math.max(1, Number.parseInt(query.get('page') ?? '1', 10) || 1)
  const impacts = useQuery(...askingImpact(prompt, page))
  const mayFilter = useScopes().includes('history:read')
  const isFiltered = mayFilter && (action !== '' || branch !== '')
  return (
    <section>
      <div class="page-head">
        <h2>Changes</h2>
        <div class="actions">
          {mayFilter && <Filters action={action} branch={branch} />}
          <a href={href(`/prompts/${encodeURIComponent(prompt)}/compare`)}>Compare two</a>
        </div>
      </div>
      <Await query={impacts}>
        {({ data, pagination }) =>
          isFiltered ? (
            <Filtered prompt={prompt} repository={repository} impacts={data} action={action} branch={branch} />
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

function Filters({ action, branch }: { action: string; branch: string }) {
  const [typed, setTyped] = useState(branch)
  return (
    <>
      <Field label="Action">
        {(tied) => (
          <Select
            {...tied}
            value={action}
            options={actions}
            onChange={(action) => changeQuery({ action, page: undefined })}
          />
        )}
      </Field>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          changeQuery({ branch: typed.trim(), page: undefined })
        }}
      >
        <Field label="Branch">
          {(tied) => (
            <input
              {...tied}
              type="search"
              value={typed}
              onInput={(event) => setTyped(event.currentTarget.value)}
              onChange={() => changeQuery({ branch: typed.trim(), page: undefined })}
            />
          )}
        </Field>
      </form>
    </>
  )
}

type FilteredProps = ChangeListProps & { impacts: Impact[]; action: string; branch: string }

function Filtered({ prompt, repository, impacts, action, branch }: FilteredProps) {
  const given = {
    limit: 50,
    action: (action || 'deployed,pr_merged').split(',') as Schemas['HistoryEntry']['action'][],
    ...(branch ? { branch } : {}),
  }
  const query = useQuery(`history of ${prompt} ${action} ${branch}`, () =>
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
