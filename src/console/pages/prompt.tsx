import { useMemo, useRef } from 'preact/hooks'
import { SignalsChart } from '../chart/signals_chart.tsx'
import { answerOf, api } from '../client/api.ts'
import { type Query, useQuery } from '../client/query.ts'
import { href } from '../client/root.ts'
import { changeQuery, usePlace } from '../client/router.ts'
import type { Schemas } from '../client/schemas.ts'
import { nameOf } from '../parts/change.tsx'
import { Field, Select } from '../parts/field.tsx'
import { formatNumber, formatPercent } from '../parts/format.ts'
import { Page } from '../parts/page.tsx'
import { Await, Empty } from '../parts/states.tsx'
import { Table } from '../parts/table.tsx'
import { Text } from '../parts/text.tsx'
import { Answer, HowWeDecide } from './answer.tsx'
import { askingImpact, ChangeList } from './change_list.tsx'
import { type Interval, nameOfInterval, ranges, readRange, timeZone } from './ranges.ts'
import { Split } from './split.tsx'

type Stats = Schemas['SignalStats']

/** A prompt: what its last change did, the evidence over time, and every change before it. */
export function Prompt({ params }: { params: Record<string, string> }) {
  const id = params.prompt_id as string
  const path = { prompt_id: id }
  const impact = useQuery(...askingImpact(id, 1))
  const { query } = usePlace()
  const range = readRange(query, new Date())
  const split = query.get('split') ?? ''
  const stats = useSteady(
    useQuery(`stats of ${id} ${range.since.getTime()} ${range.until?.getTime()} ${range.interval} ${split}`, () =>
      answerOf(
        api.GET('/api/v1/prompts/{prompt_id}/stats', {
          params: {
            path,
            query: {
              interval: range.interval,
              since: range.since.toISOString(),
              ...(range.until ? { until: range.until.toISOString() } : {}),
              tz: timeZone,
              ...(split ? { by: `metadata.${split}` } : {}),
            },
          },
        }),
      ),
    ),
  )
  const { name, repository = null, path: file } = impact.data?.prompt ?? {}
  return (
    <Page title={name ?? id} actions={<RangeControls range={range} />}>
      {repository && file && (
        <p class="muted">
          <Text>{file}</Text> in <Text>{repository}</Text>
        </p>
      )}
      <Await query={impact}>
        {({ data: [latest] }) =>
          latest ? (
            <>
              <Answer impact={latest} />
              <HowWeDecide />
            </>
          ) : (
            <Empty title="No change of this prompt has gone live yet">
              <p>
                Link it to its file in the <a href={href('/settings/prompts')}>settings</a>, or record what you deploy.
              </p>
            </Empty>
          )
        }
      </Await>
      <Await query={stats}>
        {(data) => <Evidence stats={data} interval={range.interval} changes={impact.data?.data ?? []} />}
      </Await>
      <ChangeList prompt={id} repository={repository} />
      <Split field={split} split={stats.data?.by} />
    </Page>
  )
}

/** Keeps the last answer while that of another range is on its way, so that the chart does not blink. */
function useSteady<Data>(query: Query<Data>): Query<Data> {
  const last = useRef<Data>(undefined)
  if (query.data !== undefined) last.current = query.data
  return { ...query, data: query.data ?? last.current }
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
      <Field label="by">
        {(tied) => (
          <Select
            {...tied}
            value={range.interval}
            options={range.intervals.toSorted(byLength).map((interval) => [interval, interval])}
            onChange={(by) => changeQuery({ by })}
          />
        )}
      </Field>
    </>
  )
}

const lengths: Interval[] = ['hour', 'day', 'week', 'month']
const byLength = (a: Interval, b: Interval) => lengths.indexOf(a) - lengths.indexOf(b)

type EvidenceProps = { stats: Stats; interval: Interval; changes: Schemas['Impact'][] }

/** The signals over time, as a chart and as a table. */
function Evidence({ stats, interval, changes }: EvidenceProps) {
  const points = useMemo(() => withoutEmptyStart(stats.data), [stats])
  const markers = useMemo(
    () => changes.map(({ change }) => ({ id: change.id, time: change.created_at, label: nameOf(change) })),
    [changes],
  )
  if (points.length === 0) return <Empty title="No signals in this time" />
  const name = (start: string) => nameOfInterval(start, interval)
  const zoom = (from: Date, until: Date) =>
    changeQuery({ range: undefined, by: undefined, since: from.toISOString(), until: until.toISOString() })
  return (
    <>
      <SignalsChart points={points} markers={markers} nameOf={name} onZoom={zoom} />
      <details class="as-table">
        <summary>Show as a table</summary>
        <Table
          caption="Signals over time"
          rows={points.toReversed()}
          keyOf={({ start }) => start}
          columns={[
            { name: interval[0]?.toUpperCase() + interval.slice(1), cell: ({ start }) => name(start) },
            { name: 'Positive', isFigure: true, cell: ({ positive }) => formatNumber(positive) },
            { name: 'Negative', isFigure: true, cell: ({ negative }) => formatNumber(negative) },
            {
              name: 'Share of positive',
              isFigure: true,
              cell: ({ rate }) => (rate === null ? '–' : formatPercent(rate)),
            },
          ]}
        />
      </details>
    </>
  )
}

/** A long range begins where the signals do. */
function withoutEmptyStart<P extends { total: number }>(points: P[]): P[] {
  const first = points.findIndex(({ total }) => total > 0)
  return first < 0 ? [] : points.length > 100 ? points.slice(Math.max(0, first - 1)) : points
}
