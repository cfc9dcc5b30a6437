import type { ComponentChildren } from 'preact'
import type { Estimate } from '../../impact/rate.ts'
import { formatNumber, formatPercent } from './format.ts'

export type VerdictName = 'better' | 'worse' | 'same' | 'undecided'

const signs: Record<VerdictName, string> = { better: '▲', worse: '▼', same: '=', undecided: '?' }

/** A verdict by its sign, its word and its colour, of which the word alone would do. */
export const Verdict = ({ verdict }: { verdict: VerdictName }) => (
  <span class={`verdict verdict-${verdict}`}>
    <span aria-hidden="true">{signs[verdict]}</span> {verdict}
  </span>
)

/** The sign alone, beside words that say the same. */
export const VerdictSign = ({ verdict }: { verdict: VerdictName }) => (
  <span class={`verdict verdict-${verdict}`} aria-hidden="true">
    {signs[verdict]}
  </span>
)

/** A rate with its interval, as "81 % (78–84 %)". */
export const Rate = ({ rate }: { rate: Estimate }) => (
  <span class="rate">
    {formatPercent(rate.value)} <span class="muted">({rangeOf(rate)})</span>
  </span>
)

const rangeOf = ({ low, high }: Estimate): ComponentChildren =>
  `${formatNumber(Math.round(low * 100))}–${formatPercent(high)}`

const signed = new Intl.NumberFormat(undefined, { signDisplay: 'exceptZero', maximumFractionDigits: 0 })

/** A difference of rates in points, as "+9" or "−9" with the minus sign of the command line. */
export const formatPoints = (difference: number): string =>
  signed.format(Math.round(difference * 100)).replace('-', '−')
