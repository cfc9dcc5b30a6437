import { type Estimate, rateOf } from '../../impact/rate.ts'
import { verdictSigns } from '../../impact/sentence.ts'
import type { Counts } from '../../lib/counts.ts'
import type { Schemas } from '../client/api.ts'
import { formatExactPercent, formatNumber, formatPercent } from './format.ts'
import type { Column } from './table.tsx'

export type VerdictName = NonNullable<Schemas['Impact']['verdict']>

/** A verdict by sign, word and colour. `isSign` leaves out the word, beside a sentence that says it. */
export const Verdict = ({ verdict, isSign }: { verdict: VerdictName; isSign?: boolean }) => (
  <span class={`verdict ${verdict}`}>
    <span aria-hidden="true">{verdictSigns[verdict]}</span>
    {!isSign && ` ${verdict}`}
  </span>
)

/** A rate with its interval, as "81 % (78–84 %)". `isExact` has one decimal, beside a difference. */
export function Rate({ rate: { value, low, high }, isExact = false }: { rate: Estimate; isExact?: boolean }) {
  const format = isExact ? formatExactPercent : formatPercent
  return (
    <span class="rate">
      {format(value)}{' '}
      <span class="muted">
        ({format(low).replace(/\s*%$/, '')}–{format(high)})
      </span>
    </span>
  )
}

export const countColumns: Column<Counts>[] = [
  { name: 'Positive', isFigure: true, cell: ({ positive }) => formatNumber(positive) },
  { name: 'Negative', isFigure: true, cell: ({ negative }) => formatNumber(negative) },
]

export const rateColumn: Column<Counts> = {
  name: 'Positive rate',
  cell: (counts) => {
    const rate = rateOf(counts)
    return rate ? <Rate rate={rate} /> : '–'
  },
}
