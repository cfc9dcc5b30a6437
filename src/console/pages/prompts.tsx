import { Sparkline } from '../chart/sparkline.tsx'
import { answerOf, api } from '../client/api.ts'
import { useSteadyQuery } from '../client/query.ts'
import { href } from '../client/root.ts'
import { changeQuery, usePlace } from '../client/router.ts'
import type { Schemas } from '../client/schemas.ts'
import { ChangeLine } from '../parts/change.tsx'
import { Field, Search, Select } from '../parts/field.tsx'
import { countOf } from '../parts/format.ts'
import { Page } from '../parts/page.tsx'
import { Pager } from '../parts/pager.tsx'
import { Await, Empty } from '../parts/states.tsx'
import { Table } from '../parts/table.tsx'
import { Text } from '../parts/text.tsx'
import { Rate, Verdict } from '../parts/verdict.tsx'

type Row = Schemas['PromptImpact']

const pageSize = 100

/** The orders of the interface, and its own without one. */
const orders = {
  last_change: 'last change',
  name: 'name',
  rate: 'lowest rate',
  signals: 'most signals',
  newest: 'newest prompt',
}
type Order = keyof typeof orders

const asking = (
  order: Order,
  search: string,
  cursor: string | undefined,
): [string, () => Promise<Schemas['PromptImpactList']>] => [
  `impact ${JSON.stringify([order, search, cursor])}`,
  () => {
    const query = {
      limit: pageSize,
      ...(order === 'newest' ? {} : { sort: order }),
      ...(search ? { search } : {}),
      ...(cursor ? { cursor } : {}),
    }
    return answerOf(api.GET('/api/v1/impact', { params: { query } }))
  },
]

/** Every prompt: what its users said in the last 30 days, and whether its last change did it good. */
export function Prompts() {
  const { query: given } = usePlace()
  const cursor = given.get('cursor') ?? undefined
  const order = Object.hasOwn(orders, given.get('sort') ?? '') ? (given.get('sort') as Order) : 'last_change'
  const search = given.get('find') ?? ''
  const query = useSteadyQuery(...asking(order, search, cursor))
  const choose = (sort: string) => changeQuery({ sort: sort === 'last_change' ? undefined : sort, cursor: undefined })
  const controls = (
    <>
      <Search search={search} />
      <Field label="Sort by">
        {(tied) => <Select {...tied} value={order} options={Object.entries(orders)} onChange={choose} />}
      </Field>
    </>
  )
  return (
    <Page title="Prompts" actions={controls}>
      <Await query={query}>
        {({ data, pagination }) => (
          <>
            {data.length > 0 && <PromptTable rows={data} />}
            {data.length === 0 && (search ? <Empty title={`No prompt is like “${search}”`} /> : <NoPrompts />)}
            <Pager
              isFirst={cursor === undefined}
              next={pagination.next_cursor}
              ask={(next) => asking(order, search, next)}
              words={{ first: 'First page', next: 'Next page' }}
            />
          </>
        )}
      </Await>
    </Page>
  )
}

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
