import { useEffect, useRef } from 'preact/hooks'
import { isUnknown } from '../../impact/rate.ts'
import { showDifference } from '../../impact/sentence.ts'
import { IntervalBar, reachOf } from '../chart/interval_bar.tsx'
import type { Schemas } from '../client/api.ts'
import { href } from '../client/router.ts'
import { Authors, ChangeLinks } from '../parts/change.tsx'
import { countOf, formatNumber } from '../parts/format.ts'
import { Table } from '../parts/table.tsx'
import { hrefOfChange, Text, When } from '../parts/text.tsx'
import { Rate, Verdict } from '../parts/verdict.tsx'

type Impact = Schemas['Impact']
/** A change, with what it did where that is known. */
export type ChangeRow = { change: Schemas['HistoryEntry']; impact: Impact | undefined }

export const toRow = (impact: Impact): ChangeRow => ({ change: impact.change, impact })

type ChangesProps = { prompt: string; repository: string | null; rows: ChangeRow[] }

/** The anchor of a change's row. */
export const anchorOf = ({ id }: Pick<Schemas['HistoryEntry'], 'id'>): string => `change-${id}`

/** The changes of a prompt with what each did. The intervals are drawn on one scale. */
export function Changes({ prompt, repository, rows }: ChangesProps) {
  const reach = reachOf(rows.map(({ impact }) => impact?.difference ?? null))
  useTarget()
  return (
    <Table
      caption="Changes"
      rows={rows}
      keyOf={({ change }) => change.id}
      idOf={({ change }) => anchorOf(change)}
      columns={[
        {
          name: 'Change',
          cell: ({ change, impact }) => {
            const detail = impact && hrefOfChange(prompt, change.id)
            return (
              <>
                {change.title && (
                  <a class="change-title" {...(detail && { href: detail })}>
                    <Text>{change.title}</Text>
                  </a>
                )}
                <ChangeLinks change={change} repository={repository} />
                <span class="detail">
                  <Authors change={change} />, <When time={change.created_at} />
                  {detail && !change.title && (
                    <>
                      {' · '}
                      <a href={detail}>Details</a>
                    </>
                  )}
                </span>
              </>
            )
          },
        },
        { name: 'Verdict', cell: ({ impact }) => impact?.verdict && <Verdict verdict={impact.verdict} /> },
        { name: 'Difference in points', cell: ({ impact }) => impact && <Difference {...impact} reach={reach} /> },
        {
          name: 'Positive',
          cell: ({ impact }) =>
            impact && (
              <>
                {impact.rate && <Rate isExact rate={impact.rate} />}
                <SignalsLink class="detail" prompt={prompt} impact={impact} />
              </>
            ),
        },
      ]}
    />
  )
}

/** Leads to the row that the address names as soon as it is there: when the address was opened, it was not. */
function useTarget(): void {
  const reached = useRef('')
  useEffect(() => {
    const { hash } = location
    if (hash === reached.current || !document.getElementById(hash.slice(1))) return
    reached.current = hash
    location.replace(hash)
  })
}

type DifferenceProps = Pick<Impact, 'rate' | 'difference' | 'verdict'> & {
  reach?: number
  unit?: string
  signals_needed?: number | null
}

export function Difference({ rate, difference, verdict, reach, unit, signals_needed: needed = null }: DifferenceProps) {
  if (!rate || !difference || !verdict) return null
  const shown = showDifference(rate, difference)
  return (
    <div>
      {!isUnknown(difference) && (
        <IntervalBar difference={difference} reach={reach ?? reachOf([difference])} tone={verdict} />
      )}
      <span>
        {shown.points}
        {unit}{' '}
        {!isUnknown(difference) && (
          <span class="muted">
            ({shown.low} to {shown.high})
          </span>
        )}
      </span>
      {needed !== null && <span class="detail">about {formatNumber(needed)} more signals to tell</span>}
    </div>
  )
}

type SignalsLinkProps = {
  prompt: string
  impact: Pick<Impact, 'change' | 'signals'>
  class?: string
  children?: string
}

/** The number of signals of a change, and the way to them. */
export function SignalsLink({ prompt, impact: { change, signals }, class: look, children }: SignalsLinkProps) {
  const query = new URLSearchParams({ prompt, change: String(change.id) })
  return (
    <a class={look} href={href(`/signals?${query}`)}>
      {children ?? countOf(signals.total, 'signal')}
    </a>
  )
}
