import type { ComponentChildren } from 'preact'
import { Sparkline } from '../chart/sparkline.tsx'
import { get } from '../client/api.ts'
import { changeQuery, href, usePlace } from '../client/router.ts'
import { ChangeLine } from '../parts/change.tsx'
import { Search, Select } from '../parts/field.tsx'
import { countOf } from '../parts/format.ts'
import { List } from '../parts/list.tsx'
import { Page } from '../parts/page.tsx'
import { Note } from '../parts/states.tsx'
import { Command, PromptLink, Text } from '../parts/text.tsx'
import { Rate, Verdict } from '../parts/verdict.tsx'
import { DisabledEndpoints } from './disabled_endpoints.tsx'

/** The orders of the interface, and its own without one. */
const orders = {
  last_change: 'last change',
  name: 'name',
  rate: 'lowest rate',
  signals: 'most signals',
  newest: 'newest prompt',
}

/** Every prompt: its signals of the last 30 days, and the effect of its last change. */
export function Prompts() {
  const { query } = usePlace()
  const sort = query.get('sort') ?? ''
  const order = Object.hasOwn(orders, sort) ? (sort as keyof typeof orders) : 'last_change'
  const search = query.get('find') ?? ''
  const choose = (sort: string) => changeQuery({ sort: sort === 'last_change' ? undefined : sort, cursor: undefined })
  const controls = (
    <>
      <Search search={search} />
      <Select label="Sort by" value={order} options={Object.entries(orders)} onChange={choose} />
    </>
  )
  return (
    <Page title="Prompts" actions={controls}>
      <DisabledEndpoints />
      <List
        caption="Prompts"
        pageAt={(cursor) =>
          get('/api/v1/impact', { query: { limit: 100, sort: order === 'newest' ? null : order, search, cursor } })
        }
        keepPrevious
        words={['First page', 'Next page']}
        empty={() => (
          <NoPrompts search={search}>
            Create one in the <a href={href('/settings/prompts')}>settings</a>, or on the machine of the service:
          </NoPrompts>
        )}
        keyOf={({ prompt }) => prompt.id}
        columns={[
          {
            name: 'Prompt',
            cell: ({ prompt: { id, name, path, repository } }) => (
              <>
                <PromptLink id={id} name={name} />
                {path && repository && (
                  <span class="detail">
                    <Text>{path}</Text> in <Text>{repository}</Text>
                  </span>
                )}
              </>
            ),
          },
          { name: '30 days', cell: ({ recent }) => recent.total > 0 && <Sparkline days={recent.days} /> },
          {
            name: 'Positive',
            cell: ({ recent: { rate, total } }) =>
              rate ? (
                <>
                  <Rate rate={rate} />
                  <span class="detail">{countOf(total, 'signal')}</span>
                </>
              ) : (
                <span class="muted">no signals yet</span>
              ),
          },
          {
            name: 'Effect of last change',
            cell: ({ latest }) => latest?.verdict && latest.rate && <Verdict verdict={latest.verdict} />,
          },
          {
            name: 'Last change',
            cell: ({ latest }) =>
              latest ? (
                <>
                  {latest.change.title && <Text>{latest.change.title}</Text>}
                  <span class={latest.change.title ? 'detail' : ''}>
                    <ChangeLine change={latest.change} />
                  </span>
                </>
              ) : (
                <span class="muted">none recorded</span>
              ),
          },
        ]}
      />
    </Page>
  )
}

/** No prompt was found, or none exists. The children say where to create one. */
export const NoPrompts = ({ search, children }: { search: string; children: ComponentChildren }) =>
  search ? (
    <Note title={`No prompts match “${search}”`} />
  ) : (
    <Note title="No prompts yet">
      <p>{children}</p>
      <Command>prompt-signals prompts create --org ORG --name greeting</Command>
    </Note>
  )
