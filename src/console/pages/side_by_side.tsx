import { rateOf } from '../../impact/rate.ts'
import { describeSides, nameSides, shortenCommit } from '../../impact/sentence.ts'
import { DayLines } from '../chart/day_lines.tsx'
import { get, type Schemas } from '../client/api.ts'
import { useQuery } from '../client/query.ts'
import { changeQuery, usePlace } from '../client/router.ts'
import { Button } from '../parts/button.tsx'
import { Form, Input } from '../parts/field.tsx'
import { countOf, formatDate, formatNumber, formatPercent } from '../parts/format.ts'
import { Await, Note } from '../parts/states.tsx'
import { FoldedTable, Table } from '../parts/table.tsx'
import { Code, Text } from '../parts/text.tsx'
import { Rate } from '../parts/verdict.tsx'
import { Sentence } from './answer.tsx'
import { Difference } from './changes.tsx'

type Compared = Schemas['SideBySide']

const dayMs = 86_400_000
/** Commits of the last weeks are suggested. */
const seenMs = 90 * dayMs

/** Compares two commits that ran at the same time, by the signals that name them. */
export function SideBySide({ prompt }: { prompt: string }) {
  const { query } = usePlace()
  const seen = useQuery(
    get('/api/v1/prompts/{prompt_id}/stats', {
      path: { prompt_id: prompt },
      query: {
        interval: 'week',
        since: new Date(Math.floor((Date.now() - seenMs) / dayMs) * dayMs).toISOString(),
        by: 'metadata.commit_sha',
      },
    }),
  )
  return (
    <Await query={seen}>
      {({ by }) => {
        const commits = by?.values ?? []
        const base = query.get('base') ?? commits[0]?.value ?? ''
        const head = query.get('head') ?? commits.find(({ value }) => !isShort(value, base))?.value ?? ''
        return (
          <>
            <Choice key={`${base} ${head}`} base={base} head={head} commits={commits} />
            {base && head ? (
              <Pair prompt={prompt} base={base} head={head} />
            ) : (
              <Note title="Signals must name two commits">
                <p>
                  Send the commit with each signal, as <code>commit_sha</code> in its metadata. Commits need not be in
                  the history: the head of an open pull request will do.
                </p>
              </Note>
            )}
          </>
        )
      }}
    </Await>
  )
}

/** Signals may name one commit by its whole hash and by a short one. */
const isShort = (one: string, other: string): boolean => one.startsWith(other) || other.startsWith(one)

type ChoiceProps = { base: string; head: string; commits: Schemas['MetadataSplit']['values'] }

/** Two commits, typed or taken from those that signals name. */
const Choice = ({ base, head, commits }: ChoiceProps) => (
  <Form
    class="row actions filters"
    onSubmit={(form) => changeQuery({ base: String(form.get('base')).trim(), head: String(form.get('head')).trim() })}
  >
    <datalist id="commits">
      {commits.map(({ value, total }) => (
        <option key={value} value={value}>
          {countOf(total, 'signal')}
        </option>
      ))}
    </datalist>
    <Input label="Commit" name="head" list="commits" defaultValue={head} minLength={7} required />
    <Input label="compared with" name="base" list="commits" defaultValue={base} minLength={7} required />
    <button type="submit" class="small">
      Compare
    </button>
    <Button look="small" does="Swap" onClick={() => changeQuery({ base: head, head: base })} />
  </Form>
)

function Pair({ prompt, base, head }: { prompt: string; base: string; head: string }) {
  const path = { prompt_id: prompt }
  const query = useQuery(get('/api/v1/prompts/{prompt_id}/compare', { path, query: { base, head } }))
  return <Await query={query}>{({ data }) => <Result compared={data} />}</Await>
}

function Result({ compared }: { compared: Compared }) {
  const { base, head, difference, verdict, overlap, share, notes, days } = compared
  const names = nameSides(base, head)
  return (
    <>
      <Sentence verdict={verdict} text={describeSides(compared)} kind="sideBySide">
        {overlap.days > 0 && `${countOf(overlap.days, 'day')} with signals of both`}
        {share !== null && `, ${formatPercent(share)} of them for ${names.head}`}
      </Sentence>
      {notes.map((note) => (
        <p key={note}>{note}</p>
      ))}
      <Difference rate={head.rate} difference={difference} verdict={verdict} unit=" points" />
      <DayLines
        base={days.map(({ date, base }) => ({ date, estimate: rateOf(base) }))}
        head={days.map(({ date, head }) => ({ date, estimate: rateOf(head) }))}
        scale={[0, 1]}
        labels={[1, 0.5, 0].map(formatPercent)}
        legend={
          <span class="row">
            <span class="key key-head">{names.head}</span>
            <span class="key key-base">{names.base}</span>
          </span>
        }
      />
      <Table
        caption="Versions"
        rows={[head, base]}
        keyOf={({ commit }) => commit}
        columns={[
          {
            name: 'Version',
            cell: ({ commit, change }) => (
              <>
                {change?.title && <Text>{change.title}</Text>}
                <span class={change?.title ? 'detail' : ''}>
                  <Code>{shortenCommit(commit, 12)}</Code>
                  {!change && ' not in the history'}
                </span>
              </>
            ),
          },
          { name: 'Positive on days of both', cell: ({ rate }) => (rate ? <Rate isExact rate={rate} /> : '–') },
          { name: 'Signals', isFigure: true, cell: ({ signals }) => countOf(signals.total, 'signal') },
        ]}
      />
      <FoldedTable
        caption="Signals by day"
        rows={days.toReversed()}
        keyOf={({ date }) => date}
        columns={[
          { name: 'Day (UTC)', cell: ({ date }) => formatDate(date) },
          { name: names.head, isFigure: true, cell: (day) => countsOf(day.head) },
          { name: names.base, isFigure: true, cell: (day) => countsOf(day.base) },
        ]}
      />
    </>
  )
}

const countsOf = ({ positive, negative }: { positive: number; negative: number }): string =>
  positive + negative === 0 ? '–' : `${formatNumber(positive)} of ${formatNumber(positive + negative)} positive`
