import { type Counts, type Estimate, rateOf } from '../../impact/rate.ts'
import type { Schemas } from '../client/schemas.ts'
import { formatNumber, formatPercent } from './format.ts'
import type { Column } from './table.tsx'

export type VerdictName = NonNullable<Schemas['Impact']['verdict']>

const signs: Record<VerdictName, string> = { better: '▲', worse: '▼', same: '=', undecided: '?' }

/** A verdict by sign, word and colour. `isSign` leaves out the word, beside a sentence that says it. */
export const Verdict = ({ verdict, isSign }: { verdict: VerdictName; isSign?: boolean }) => (
  <span class={`verdict ${verdict}`}>
    <span aria-hidden="true">{signs[verdict]}</span>
    {!isSign && ` ${verdict}`}
  </span>
)

/** A rate with its interval, as "81 % (78–84 %)". */
export const Rate = ({ rate: { value, low, high } }: { rate: Estimate }) => (
  <span class="rate">
    {formatPercent(value)}{' '}
    <span class="muted">
      ({formatNumber(Math.round(low * 100))}–{formatPercent(high)})
    </span>
  </span>
)

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

const signed = new Intl.NumberFormat(undefined, { signDisplay: 'exceptZero', maximumFractionDigits: 0 })

/** A difference of rates in points, as "+9" or "−9" with the minus sign of the command line. */
export const formatPoints = (difference: number): string =>
  signed.format(Math.round(difference * 100)).replace('-', '−')
