import { answerOf, api } from '../client/api.ts'
import { parseExactly } from '../client/exact_json.ts'
import { usePrompts } from '../client/prompt_names.ts'
import { useQuery } from '../client/query.ts'
import { href } from '../client/root.ts'
import { usePlace } from '../client/router.ts'
import type { Schemas } from '../client/schemas.ts'
import { formatMoment } from '../parts/format.ts'
import { Page } from '../parts/page.tsx'
import { Pager } from '../parts/pager.tsx'
import { Await, Empty } from '../parts/states.tsx'
import { Table } from '../parts/table.tsx'
import { Tree } from '../parts/tree.tsx'
import { SignalExport } from './signal_export.tsx'
import { SignalFilters } from './signal_filters.tsx'

type SignalList = Schemas['RecordedSignalList']

const filterNames = ['value', 'since', 'until']

/** The filters of the page's address, under the names that the interface has for them. */
function readFilters(query: URLSearchParams): Record<string, string> {
  return Object.fromEntries([...query].filter(([name]) => filterNames.includes(name) || name.startsWith('metadata.')))
}

const asking = (prompt: string, filters: Record<string, string>, cursor: string | undefined) =>
  [
    `signals of ${prompt} ${JSON.stringify(filters)} ${cursor ?? ''}`,
    async (): Promise<SignalList> => {
      const query = { ...filters, ...(cursor ? { cursor } : {}) }
      const params = { path: { prompt_id: prompt }, query }
      const text = await answerOf(api.GET('/api/v1/prompts/{prompt_id}/signals', { params, parseAs: 'text' }))
      return parseExactly(text) as SignalList
    },
  ] as const

/** The signals of a prompt, newest first. */
export function Signals() {
  const { query } = usePlace()
  const prompts = usePrompts()
  const chosen = query.get('prompt') ?? prompts.data?.data[0]?.id
  return (
    <Page title="Signals" actions={chosen && <SignalExport prompt={chosen} filters={readFilters(query)} />}>
      {chosen === undefined ? (
        <Await query={prompts}>{({ data }) => data.length === 0 && <Empty title="There are no prompts yet" />}</Await>
      ) : (
        <>
          <SignalFilters prompt={chosen} prompts={prompts.data} filters={readFilters(query)} />
          <List prompt={chosen} filters={readFilters(query)} cursor={query.get('cursor') ?? undefined} />
        </>
      )}
    </Page>
  )
}

type ListProps = { prompt: string; filters: Record<string, string>; cursor: string | undefined }

function List({ prompt, filters, cursor }: ListProps) {
  const query = useQuery(...asking(prompt, filters, cursor))
  return (
    <Await query={query}>
      {({ data, pagination }) => (
        <>
          {data.length === 0 && (
            <Nothing
              prompt={prompt}
              isFiltered={Object.keys(filters).length > 0}
              isLast={pagination.next_cursor === null}
            />
          )}
          {data.length > 0 && (
            <Table
              caption="Signals"
              rows={data}
              keyOf={({ id }) => id}
              columns={[
                { name: 'When', cell: ({ created_at: time }) => <time dateTime={time}>{formatMoment(time)}</time> },
                { name: 'Value', cell: ({ value }) => <Value value={value} /> },
                {
                  name: 'Metadata',
                  cell: ({ metadata }) =>
                    metadata ? <Tree isRoot name="metadata" value={metadata} /> : <span class="muted">none</span>,
                },
              ]}
            />
          )}
          <Pager
            isFirst={cursor === undefined}
            next={pagination.next_cursor}
            ask={(next) => [...asking(prompt, filters, next)]}
          />
        </>
      )}
    </Await>
  )
}

const Value = ({ value }: { value: 'positive' | 'negative' }) => (
  <span class={`verdict verdict-${value === 'positive' ? 'better' : 'worse'}`}>
    <span aria-hidden="true">{value === 'positive' ? '+' : '−'}</span> {value}
  </span>
)

type NothingProps = { prompt: string; isFiltered: boolean; isLast: boolean }

function Nothing({ prompt, isFiltered, isLast }: NothingProps) {
  if (!isLast) return <Empty title="None here: the search goes on below" />
  if (isFiltered) return <Empty title="No signal is like that" />
  return (
    <Empty title="No signals yet">
      <p>
        This records one (see the <a href={href('/docs')}>documentation</a>):
      </p>
      <pre>
        <code>{`curl -X POST -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' \\
  -d '{"value":"positive"}' "${new URL(href(`/api/v1/prompts/${prompt}/signals`), location.href)}"`}</code>
      </pre>
    </Empty>
  )
}
