import { answerOf, api, get, type Question, type Schemas } from '../client/api.ts'
import { parseExactly } from '../client/exact_json.ts'
import { useQuery, useSending } from '../client/query.ts'
import { usePlace } from '../client/router.ts'
import { Button } from '../parts/button.tsx'
import { List } from '../parts/list.tsx'
import { Page } from '../parts/page.tsx'
import { Await, FailureNote, Note } from '../parts/states.tsx'
import { Moment } from '../parts/text.tsx'
import { Tree } from '../parts/tree.tsx'
import { FirstSignal, useFirstSignal } from './first_signal.tsx'
import { NoPrompts } from './next_step.tsx'
import { SignalFilters } from './signal_filters.tsx'

type SignalList = Schemas['RecordedSignalList']
/** A prompt, and the filters on its signals under the names that the interface has for them. */
type Chosen = { prompt: string; filters: Record<string, string> }

/** The signals of a prompt, newest first; of the one with the most signals, unless the address names another. */
export function Signals() {
  const { query } = usePlace()
  const busiest = useQuery(get('/api/v1/impact', { query: { limit: 100, sort: 'signals' } }))
  const prompt = query.get('prompt') ?? busiest.data?.data[0]?.prompt.id
  if (prompt === undefined) {
    return (
      <Page title="Signals">
        <Await query={busiest}>{({ data }) => data.length === 0 && <NoPrompts />}</Await>
      </Page>
    )
  }
  const isFilter = (name: string) => /^(value|since|until|change)$|^metadata\./.test(name)
  const filters = Object.fromEntries([...query].filter(([name]) => isFilter(name)))
  const isFiltered = Object.keys(filters).length > 0
  return (
    <Page title="Signals" actions={<Export prompt={prompt} filters={filters} />}>
      <SignalFilters prompt={prompt} busiest={busiest.data} filters={filters} />
      <List
        caption="Signals"
        pageAt={(cursor) => getSignals({ prompt, filters }, cursor)}
        empty={(isLast) => <NoSignals prompt={prompt} isFiltered={isFiltered} isLast={isLast} />}
        keyOf={({ id }) => id}
        columns={[
          { name: 'When', cell: ({ created_at }) => <Moment time={created_at} /> },
          { name: 'Value', cell: ({ value }) => <Value value={value} /> },
          { name: 'Metadata', cell: ({ metadata }) => <Tree isRoot name="metadata" value={metadata} /> },
        ]}
      />
    </Page>
  )
}

function getSignals({ prompt, filters }: Chosen, cursor: string | null): Question<SignalList> {
  const url = '/api/v1/prompts/{prompt_id}/signals'
  const params = { path: { prompt_id: prompt }, query: { ...filters, ...(cursor && { cursor }) } }
  const read = async () => {
    const { data, ...rest } = await api.GET(url, { params, parseAs: 'text' })
    return { ...rest, ...(data !== undefined && { data: parseExactly(data) as SignalList }) }
  }
  return { name: get(url, params).name, ask: () => answerOf(read()) }
}

const Value = ({ value }: { value: 'positive' | 'negative' }) => (
  <span class={`verdict ${value === 'positive' ? 'better' : 'worse'}`}>
    <span aria-hidden="true">{value === 'positive' ? '+' : '−'}</span> {value}
  </span>
)

function NoSignals({ prompt, isFiltered, isLast }: { prompt: string; isFiltered: boolean; isLast: boolean }) {
  useFirstSignal(prompt, isLast && !isFiltered)
  if (!isLast) return <Note title="No matches on this page. Older signals may match." />
  if (isFiltered) return <Note title="No signals match" />
  return <FirstSignal prompt={prompt} hasArrived={false} />
}

/** Saves the signals as a file. The API exports by value and time only. */
function Export({ prompt, filters: { value, since, until, ...others } }: Chosen) {
  const { isSending, failure, send } = useSending()
  const save = (format: 'csv' | 'ndjson') => async () => {
    const params = { path: { prompt_id: prompt }, query: { value, since, until, format } as object }
    const asked = api.GET('/api/v1/prompts/{prompt_id}/signals/export', { params, parseAs: 'blob' })
    saveAs(await answerOf<Blob>(asked), `${prompt}.${format}`)
  }
  return (
    <div class="row fine">
      Export{Object.keys(others).length > 0 && ' (ignores the other filters)'}
      <Button look="small" does="CSV" isDisabled={isSending} onClick={() => send(save('csv'))} />
      <Button look="small" does="NDJSON" isDisabled={isSending} onClick={() => send(save('ndjson'))} />
      {failure && <FailureNote failure={failure} />}
    </div>
  )
}

function saveAs(content: Blob, name: string): void {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(content)
  link.download = name
  link.click()
  URL.revokeObjectURL(link.href)
}
