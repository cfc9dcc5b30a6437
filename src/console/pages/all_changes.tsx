import { isUnknown } from '../../impact/rate.ts'
import { nameAuthors } from '../../impact/sentence.ts'
import { IntervalBar, reachOf } from '../chart/interval_bar.tsx'
import { get, type QueryOf, type Schemas } from '../client/api.ts'
import { useQuery } from '../client/query.ts'
import { changeQuery, usePlace } from '../client/router.ts'
import { Title } from '../parts/change.tsx'
import { Input, Search, Select } from '../parts/field.tsx'
import { countOf, formatNumber } from '../parts/format.ts'
import { Found } from '../parts/list.tsx'
import { Page } from '../parts/page.tsx'
import { Await, Note } from '../parts/states.tsx'
import { Table } from '../parts/table.tsx'
import { hrefOfChange, PromptLink, Text, When } from '../parts/text.tsx'
import { Verdict } from '../parts/verdict.tsx'
import { PageLinks, readPage } from './change_list.tsx'
import { SignalsLink } from './changes.tsx'
import { DisabledEndpoints } from './disabled_endpoints.tsx'
import { NoChanges } from './next_step.tsx'
import { ranges, readRange } from './ranges.ts'

type ChangesPage = Schemas['ChangeImpactPage']
type Change = ChangesPage['data'][number]

const verdicts = Object.entries({
  '': 'any',
  worse: 'worse',
  better: 'better',
  same: 'same',
  undecided: 'undecided',
})

const getChanges = (query: QueryOf<'/api/v1/changes'>) => get('/api/v1/changes', { query: { limit: 100, ...query } })

/** What the changes of all prompts did that went live in a time: bad news first. */
export function AllChanges() {
  const { query } = usePlace()
  const { name: range, since, until } = readRange(query, new Date())
  const given = (name: string) => query.get(name) ?? ''
  const [search, author, verdict] = [given('find'), given('author'), given('verdict')]
  const filters = {
    ...{ since: since.toISOString(), until: until?.toISOString() ?? null, search, author },
    verdict: (verdicts.some(([name]) => name === verdict) ? verdict : '') as Change['verdict'],
  }
  const pageAt = (page: number) => getChanges({ ...filters, page })
  const changes = useQuery(pageAt(readPage(query)), { keepPrevious: true })
  const filter = (name: string) => (value: string) => changeQuery({ [name]: value.trim(), page: undefined })
  const controls = (
    <>
      <Search search={search} label="Prompt" />
      <Input label="Author" type="search" maxLength={200} defaultValue={author} onTyped={filter('author')} />
      <Select label="Verdict" value={filters.verdict ?? ''} options={verdicts} onChange={filter('verdict')} />
      <Select
        label="Time"
        value={range}
        options={Object.entries(ranges).map(([value, { words }]) => [value, words])}
        onChange={(range) => changeQuery({ range, since: undefined, until: undefined, page: undefined })}
      />
    </>
  )
  const isFiltered = [search, author, verdict].some((text) => text !== '')
  return (
    <Page title="Changes" actions={controls}>
      <DisabledEndpoints />
      <Found caption="Changes" count={changes.data?.data.length} />
      <Await query={changes}>
        {(page) => (
          <>
            <Changes page={page} isFiltered={isFiltered} />
            <PageLinks pagination={page.pagination} pageAt={pageAt} />
          </>
        )}
      </Await>
    </Page>
  )
}

function Changes({
  page: { data, counts, complete, pagination },
  isFiltered,
}: {
  page: ChangesPage
  isFiltered: boolean
}) {
  const { without_signals: silent, ...told } = counts
  const found = Object.values(told).reduce((sum, count) => sum + count, 0)
  const rows = data.filter(({ signals }) => signals.total > 0)
  if (found + silent === 0 && !isFiltered) return <NoChanges />
  const isLast = pagination.current_page >= pagination.total_pages
  return (
    <>
      <p class="answer">{summaryOf(told)}</p>
      {rows.length > 0 && <ChangeTable rows={rows} />}
      {rows.length === 0 && pagination.total_count === 0 && <Note title="No changes match" />}
      {silent > 0 && isLast && <p class="muted">{countOf(silent, 'change has', 'changes have')} no signals.</p>}
      {!complete && (
        <p class="muted">
          Only the newest {formatNumber(found + silent)} changes of this time are listed. Choose a shorter time to see
          the others.
        </p>
      )}
    </>
  )
}

/** As "3 worse, 5 better, 12 undecided". */
function summaryOf({ not_compared: first, ...verdicts }: Omit<ChangesPage['counts'], 'without_signals'>) {
  const words = { worse: 'worse', better: 'better', same: 'the same', undecided: 'undecided' }
  const parts = Object.entries(words).flatMap(([name, word]) => {
    const count = verdicts[name as keyof typeof words]
    return count > 0 ? [`${formatNumber(count)} ${word}`] : []
  })
  if (first > 0) parts.push(`${formatNumber(first)} without an earlier one`)
  return parts.length > 0 ? parts.join(', ') : 'No change with signals'
}

function ChangeTable({ rows }: { rows: Change[] }) {
  const reach = reachOf(rows.map(({ difference }) => difference))
  return (
    <Table
      caption="Changes"
      rows={rows}
      keyOf={({ change }) => change.id}
      columns={[
        {
          name: 'Change',
          cell: ({ prompt, change }) => (
            <>
              <a class="change-title" href={hrefOfChange(prompt.id, change.id)}>
                <Title change={change} />
              </a>
              <span class="detail">
                <PromptLink id={prompt.id} name={prompt.name} /> · <Text>{nameAuthors(change)}</Text>,{' '}
                <When time={change.created_at} />
              </span>
            </>
          ),
        },
        {
          name: 'What happened',
          isText: true,
          cell: ({ verdict, sentence }) => (
            <span class="sentence">
              {verdict && <Verdict isSign verdict={verdict} />} <Text>{sentence}</Text>
            </span>
          ),
        },
        {
          name: 'Difference',
          cell: ({ verdict, difference }) =>
            verdict &&
            difference &&
            !isUnknown(difference) && <IntervalBar difference={difference} reach={reach} tone={verdict} />,
        },
        {
          name: 'Signals',
          isFigure: true,
          cell: ({ prompt, ...impact }) => (
            <SignalsLink prompt={prompt.id} impact={impact}>
              {formatNumber(impact.signals.total)}
            </SignalsLink>
          ),
        },
      ]}
    />
  )
}
