import { useState } from 'preact/hooks'
import { Sparkline } from '../chart/sparkline.tsx'
import { answerOf, api } from '../client/api.ts'
import { useQuery } from '../client/query.ts'
import { href } from '../client/root.ts'
import { changeQuery, usePlace } from '../client/router.ts'
import type { Schemas } from '../client/schemas.ts'
import { ChangeLine } from '../parts/change.tsx'
import { Field, Select } from '../parts/field.tsx'
import { countOf } from '../parts/format.ts'
import { Page } from '../parts/page.tsx'
import { Pager } from '../parts/pager.tsx'
import { Await, Empty } from '../parts/states.tsx'
import { Table } from '../parts/table.tsx'
import { Text } from '../parts/text.tsx'
import { Rate, Verdict } from '../parts/verdict.tsx'

type Row = Schemas['PromptImpact']

const pageSize = 100

const asking = (cursor: string | undefined): [string, () => Promise<Schemas['PromptImpactList']>] => [
  `impact ${cursor ?? ''}`,
  () => answerOf(api.GET('/api/v1/impact', { params: { query: { limit: pageSize, ...(cursor ? { cursor } : {}) } } })),
]

const orders: Record<string, { name: string; compare(a: Row, b: Row): number }> = {
  change: { name: 'last change', compare: (a, b) => changedAt(b) - changedAt(a) },
  name: { name: 'name', compare: (a, b) => a.prompt.name.localeCompare(b.prompt.name) },
  rate: { name: 'lowest rate', compare: (a, b) => (a.recent.rate?.value ?? 2) - (b.recent.rate?.value ?? 2) },
  signals: { name: 'most signals', compare: (a, b) => b.recent.total - a.recent.total },
}

const changedAt = ({ latest }: Row): number => (latest ? new Date(latest.change.created_at).getTime() : 0)

/** Every prompt: what its users said in the last 30 days, and whether its last change did it good. */
export function Prompts() {
  const { query: given } = usePlace()
  const cursor = given.get('cursor') ?? undefined
  const order = orders[given.get('sort') ?? ''] ? (given.get('sort') as string) : 'change'
  const [wanted, setWanted] = useState(given.get('find') ?? '')
  const query = useQuery(...asking(cursor))
  const find = (text: string) => {
    setWanted(text)
    changeQuery({ find: text })
  }
  const controls = (
    <>
      <Field label="Find">
        {(tied) => (
          <input {...tied} type="search" value={wanted} onInput={(event) => find(event.currentTarget.value)} />
        )}
      </Field>
      <Field label="Sort by">
        {(tied) => (
          <Select
            {...tied}
            value={order}
            options={Object.entries(orders).map(([value, { name }]) => [value, name])}
            onChange={(sort) => changeQuery({ sort: sort === 'change' ? undefined : sort })}
          />
        )}
      </Field>
    </>
  )
  return (
    <Page title="Prompts" actions={controls}>
      <Await query={query}>
        {({ data, pagination }) => {
          const rows = data.filter((row) => isFound(row, wanted)).toSorted(orders[order]?.compare)
          return (
            <>
              {data.length === 0 ? (
                <NoPrompts />
              ) : (
                rows.length === 0 && <Empty title={`No prompt is called “${wanted}”`} />
              )}
              {rows.length > 0 && <PromptTable rows={rows} />}
              <Pager isFirst={cursor === undefined} next={pagination.next_cursor} ask={asking} />
            </>
          )
        }}
      </Await>
    </Page>
  )
}

const isFound = ({ prompt: { id, name, path } }: Row, wanted: string): boolean =>
  [id, name, path ?? ''].some((text) => text.toLowerCase().includes(wanted.trim().toLowerCase()))

const PromptTable = ({ rows }: { rows: Row[] }) => (
  <Table
    caption="Prompts"
    rows={rows}
    keyOf={({ prompt }) => prompt.id}
    columns={[
      {
        name: 'Prompt',
        cell: ({ prompt: { id, name, path } }) => (
          <>
            <a href={href(`/prompts/${encodeURIComponent(id)}`)}>
              <Text>{name}</Text>
            </a>
            {path && (
              <span class="detail">
                <Text>{path}</Text>
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
        name: 'Since the last change',
        cell: ({ latest }) => latest?.verdict && <Verdict verdict={latest.verdict} />,
      },
      {
        name: 'Last change',
        cell: ({ latest }) =>
          latest ? <ChangeLine change={latest.change} /> : <span class="muted">none recorded</span>,
      },
    ]}
  />
)

const NoPrompts = () => (
  <Empty title="There are no prompts yet">
    <p>
      Make one in the <a href={href('/settings/prompts')}>settings</a>, or on the machine of the service:
    </p>
    <pre>
      <code>prompt-signals prompts create --org ORG --name greeting</code>
    </pre>
  </Empty>
)
