import { isUnknown } from '../../impact/rate.ts'
import { IntervalBar, reachOf } from '../chart/interval_bar.tsx'
import { get, type Schemas } from '../client/api.ts'
import { useQuery } from '../client/query.ts'
import { usePlace } from '../client/router.ts'
import { Authors, Title } from '../parts/change.tsx'
import { Select } from '../parts/field.tsx'
import { Choice, filter, Search, TextFilter, useChoice } from '../parts/filters.tsx'
import { countOf, formatNumber } from '../parts/format.ts'
import { Found } from '../parts/list.tsx'
import { Page } from '../parts/page.tsx'
import { Await, Note } from '../parts/states.tsx'
import { Table } from '../parts/table.tsx'
import { hrefOfChange, Ours, PromptLink, When } from '../parts/text.tsx'
import { Verdict } from '../parts/verdict.tsx'
import { PageLinks, readPage } from './change_list.tsx'
import { SignalsLink } from './changes.tsx'
import { DisabledEndpoints } from './disabled_endpoints.tsx'
import { FirstSignal, useFirstSignal } from './first_signal.tsx'
import { NoChanges } from './next_step.tsx'
import { ranges, readRange } from './ranges.ts'

type ChangesPage = Schemas['ChangeImpactPage']
type Change = ChangesPage['data'][number]

const verdicts = { '': 'any', worse: 'worse', better: 'better', same: 'same', undecided: 'undecided' }

/** What the changes of all prompts did that went live in a time: bad news first. */
export function AllChanges() {
  const { query } = usePlace()
  const { name: range, since, until } = readRange(query, new Date())
  const verdict = useChoice('verdict', verdicts) || null
  const [search, author] = [query.get('find'), query.get('author')]
  const filters = { since: since.toISOString(), until: until?.toISOString() ?? null, search, author, verdict }
  const pageAt = (page: number) => get('/api/v1/changes', { query: { limit: 100, ...filters, page } })
  const changes = useQuery(pageAt(readPage(query)), { keepPrevious: true })
  const controls = (
    <>
      <Search label="Prompt" />
      <TextFilter label="Author" name="author" />
      <Choice label="Verdict" name="verdict" options={verdicts} />
      <Select
        label="Time"
        value={range}
        options={Object.entries(ranges).map(([value, { words }]) => [value, words])}
        onChange={(range) => filter({ range, since: undefined, until: undefined })}
      />
    </>
  )
  const isFiltered = Boolean(search || author || verdict)
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

function Changes({ page, isFiltered }: { page: ChangesPage; isFiltered: boolean }) {
  const { data, counts, complete, pagination } = page
  const { without_signals: silent, ...told } = counts
  const found = Object.values(told).reduce((sum, count) => sum + count, 0)
  const rows = data.filter(({ signals }) => signals.total > 0)
  if (found + silent === 0 && !isFiltered) return <NoChanges />
  const isLast = pagination.current_page >= pagination.total_pages
  return (
    <>
      <p class="answer">{summaryOf(told)}</p>
      {found === 0 && data[0] && <Silent key={data[0].prompt.id} change={data[0]} />}
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

/** How to record signals for the newest change, if its prompt has none at all. */
function Silent({ change: { prompt, change } }: { change: Change }) {
  const first = useFirstSignal(prompt.id, true)
  return first === 'known' ? null : (
    <FirstSignal prompt={prompt.id} commit={change.commit_sha} hasArrived={first === 'arrived'} />
  )
}

/** As "3 worse, 5 better, 12 undecided". */
function summaryOf(counts: Omit<ChangesPage['counts'], 'without_signals'>) {
  const { worse, better, same, undecided, not_compared: first } = counts
  const words = { worse, better, 'the same': same, undecided, 'without an earlier one': first }
  const parts = Object.entries(words).filter(([, count]) => count > 0)
  return parts.map(([word, count]) => `${formatNumber(count)} ${word}`).join(', ') || 'No change with signals'
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
                <PromptLink id={prompt.id} name={prompt.name} /> · <Authors change={change} />,{' '}
                <When time={change.created_at} />
              </span>
            </>
          ),
        },
        {
          name: 'What happened',
          isText: true,
          cell: ({ verdict, sentence }) => (
            <>
              {verdict && <Verdict isSign verdict={verdict} />} <Ours>{sentence}</Ours>
            </>
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
