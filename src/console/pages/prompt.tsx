import { useMemo } from 'preact/hooks'
import { describeRateChange } from '../../impact/sentence.ts'
import type { Interval } from '../chart/points.ts'
import { SignalsChart } from '../chart/signals_chart.tsx'
import { get, type Schemas } from '../client/api.ts'
import { useQuery } from '../client/query.ts'
import { changeQuery, href, usePlace } from '../client/router.ts'
import { nameOf } from '../parts/change.tsx'
import { Select } from '../parts/field.tsx'
import { countOf, formatExactPercent } from '../parts/format.ts'
import { Page } from '../parts/page.tsx'
import { Await, Note } from '../parts/states.tsx'
import { FoldedTable } from '../parts/table.tsx'
import { Code, Ours } from '../parts/text.tsx'
import { countColumns, rateColumn } from '../parts/verdict.tsx'
import { Answer } from './answer.tsx'
import { ChangeList, changesPerPage, getImpact } from './change_list.tsx'
import { ChangePage } from './change_page.tsx'
import { anchorOf } from './changes.tsx'
import { FirstSignal, useFirstSignal } from './first_signal.tsx'
import { NoHistory } from './next_step.tsx'
import { NotFound } from './not_found.tsx'
import { nameOfInterval, type Range, ranges, readRange, timeZone } from './ranges.ts'
import { Reasons, reasonsField } from './reasons.tsx'
import { Split } from './split.tsx'

/** A prompt, or one of its changes. */
export function Prompt({ prompt }: { prompt: string }) {
  const chosen = Number(/^\d{1,15}$/.exec(usePlace().query.get('change') ?? '')?.[0] ?? 0)
  return chosen > 0 ? <ChangePage key={chosen} prompt={prompt} entry={chosen} /> : <WholePrompt prompt={prompt} />
}

/** What the last change of a prompt did, the evidence over time, and every change before it. */
function WholePrompt({ prompt: id }: { prompt: string }) {
  const impact = useQuery(getImpact(id))
  const { query } = usePlace()
  const range = readRange(query, new Date())
  const split = query.get('split') ?? ''
  const flagged = useFlagged(id, impact.data, range)
  const statsBy = (field: string) =>
    get('/api/v1/prompts/{prompt_id}/stats', {
      path: { prompt_id: id },
      query: {
        interval: range.interval,
        since: range.since.toISOString(),
        until: range.until?.toISOString() ?? null,
        tz: timeZone,
        by: `metadata.${field}`,
      },
    })
  const stats = useQuery(statsBy(split || reasonsField), { keepPrevious: true })
  // The same request, unless the reader has chosen another field.
  const reasons = useQuery(statsBy(reasonsField), { keepPrevious: true })
  const first = useFirstSignal(id, stats.data?.data.every(({ total }) => total === 0) ?? false)
  const { name, repository = null, path: file, live_branch: branch } = impact.data?.prompt ?? {}
  const places = [file && `${file} in ${repository}`, branch && `live branch ${branch}`].filter((one) => one != null)
  const [latest] = impact.data?.data ?? []
  const totals = stats.data?.totals
  if (impact.failure?.kind === 'missing') {
    return <NotFound what="Prompt">It does not exist, or belongs to another organisation.</NotFound>
  }
  return (
    <Page title={name ?? id} actions={first !== 'awaited' && <RangeControls range={range} />}>
      <p class="detail subtitle">
        <Code>{id}</Code> ·{' '}
        {places.map((place) => (
          <Ours key={place}>{`${place} · `}</Ours>
        ))}
        <a href={href(`/signals?${new URLSearchParams({ prompt: id })}`)}>View signals</a>
      </p>
      <Await query={impact}>
        {({ prompt, rate_changed: rateChanged }) => (
          <>
            {latest && <Answer impact={latest} />}
            {rateChanged && (
              <p class="answer" id={rateChangeAnchor} tabIndex={-1}>
                <Ours>{describeRateChange(rateChanged)}</Ours>
              </p>
            )}
            {!latest && totals?.rate != null && (
              <p class="answer">
                {formatExactPercent(totals.rate)} positive, {countOf(totals.total, 'signal')} in this range.
              </p>
            )}
            {!latest && <NoHistory prompt={prompt} />}
          </>
        )}
      </Await>
      {first !== 'known' && (
        <FirstSignal prompt={id} commit={latest?.change.commit_sha} hasArrived={first === 'arrived'} />
      )}
      {first !== 'awaited' && (
        <Await query={stats}>
          {(data) => (
            <Evidence stats={data} range={range} rateChanged={impact.data?.rate_changed ?? null} {...flagged} />
          )}
        </Await>
      )}
      <Reasons prompt={id} range={range} split={reasons.data?.by} />
      {latest && <ChangeList prompt={id} repository={repository} />}
      {first === 'known' && <Split prompt={id} field={split} split={split ? stats.data?.by : undefined} />}
    </Page>
  )
}

/** The changes of a range, for their flags; and how many more there are, which are too many for that. */
function useFlagged(prompt: string, newest: Schemas['ImpactPage'] | undefined, { since, until }: Range) {
  const oldest = newest?.data.at(-1)?.change.created_at
  // Beyond the newest changes, which the page has anyway, only the reader of a longer time needs more of them.
  const isLonger = oldest && newest.pagination.total_pages > 1 && new Date(oldest) > since
  const last = oldest && until && until < new Date(oldest) ? until.toISOString() : oldest
  const asked = { limit: 100, since: since.toISOString(), until: last ?? null }
  const older = useQuery(isLonger ? getImpact(prompt, asked) : undefined).data
  const known = new Set(newest?.data.map(({ change }) => change.id))
  const added = older?.data.filter(({ change }) => !known.has(change.id)) ?? []
  return useMemo(
    () => ({
      changes: [...(newest?.data ?? []), ...added],
      unflagged: older ? older.pagination.total_count - older.data.length : 0,
    }),
    [newest, older],
  )
}

function RangeControls({ range }: { range: ReturnType<typeof readRange> }) {
  const choose = (name: string) => () => changeQuery({ range: name, since: undefined, until: undefined, by: undefined })
  return (
    <>
      <fieldset class="choice">
        <legend class="visually-hidden">Range</legend>
        {Object.entries(ranges).map(([value, { name }]) => (
          <button key={value} type="button" class="small" aria-pressed={range.name === value} onClick={choose(value)}>
            {name}
          </button>
        ))}
      </fieldset>
      <Select
        label="by"
        value={range.interval}
        options={intervals.filter((one) => range.intervals.includes(one)).map((one) => [one, one])}
        onChange={(by) => changeQuery({ by })}
      />
    </>
  )
}

const intervals: Interval[] = ['hour', 'day', 'week', 'month']

const rateChangeAnchor = 'rate-change'

type EvidenceProps = {
  stats: Schemas['SignalStats']
  range: Range
  rateChanged: Schemas['ImpactPage']['rate_changed']
  changes: Schemas['Impact'][]
  unflagged: number
}

/** The signals over time, as a chart and as a table. */
function Evidence({ stats, range, rateChanged, changes, unflagged }: EvidenceProps) {
  const { interval, since, until } = range
  const points = useMemo(() => withoutEmptyStart(stats.data), [stats])
  const markers = useMemo(() => {
    const flags = changes.map(({ change }) => ({
      anchor: anchorOf(change),
      time: change.created_at,
      label: nameOf(change),
      title: change.title,
      isChange: true,
    }))
    if (!rateChanged) return flags
    const flag = { anchor: rateChangeAnchor, time: rateChanged.from, label: 'not in git', title: 'the rate changed' }
    return [...flags, { ...flag, isChange: false }]
  }, [changes, rateChanged])
  if (points.length === 0) return <Note title="No signals in this range" />
  const name = (start: string) => nameOfInterval(start, interval)
  const zoom = (from: Date, until: Date) =>
    changeQuery({ range: undefined, by: undefined, since: from.toISOString(), until: until.toISOString() })
  // Of the changes in the time of the chart each has its page, whatever is listed at the moment.
  const list = (anchor: string) => {
    if (document.getElementById(anchor)) return
    const listed = changes.filter(
      ({ change: { created_at: time } }) => new Date(time) >= since && (!until || new Date(time) <= until),
    )
    const page = Math.floor(listed.findIndex(({ change }) => anchorOf(change) === anchor) / changesPerPage) + 1
    changeQuery({ action: undefined, branch: undefined, time: 'chart', page: page > 1 ? String(page) : undefined })
  }
  return (
    <>
      <SignalsChart points={points} interval={interval} markers={markers} nameOf={name} onZoom={zoom} onFlag={list} />
      {unflagged > 0 && (
        <p class="muted">
          {countOf(unflagged, 'older change')} in this range {unflagged === 1 ? 'has' : 'have'} no flag. Choose a
          shorter range to see them.
        </p>
      )}
      <FoldedTable
        caption="Signals over time"
        rows={points.toReversed()}
        keyOf={({ start }) => start}
        columns={[
          { name: interval[0]?.toUpperCase() + interval.slice(1), cell: ({ start }) => name(start) },
          ...countColumns,
          { ...rateColumn, isFigure: true },
        ]}
      />
    </>
  )
}

/** A long range begins where the signals do. */
function withoutEmptyStart(points: Schemas['StatsPoint'][]): Schemas['StatsPoint'][] {
  const first = points.findIndex(({ total }) => total > 0)
  if (first < 0) return []
  return points.length > 100 ? points.slice(Math.max(0, first - 1)) : points
}
