import type { ComponentChildren } from 'preact'
import type { Schemas } from '../client/schemas.ts'
import { nameOf } from '../parts/change.tsx'
import { countOf, formatExactPercent, formatNumber } from '../parts/format.ts'
import { Text } from '../parts/text.tsx'
import { formatPoints, shownDifference, Verdict, type VerdictName } from '../parts/verdict.tsx'

type Impact = Schemas['Impact']

/** The effect of the change, in a sentence. */
export const Answer = ({ impact }: { impact: Impact }) => (
  <p class="answer">
    {impact.verdict && (
      <>
        <Verdict isSign verdict={impact.verdict} />{' '}
      </>
    )}
    {sentenceOf(impact)}
  </p>
)

const did: Record<VerdictName, string> = {
  better: 'made it better',
  worse: 'made it worse',
  same: 'made no meaningful difference',
  undecided: 'is undecided',
}

function sentenceOf({ change, signals, rate, difference, verdict, signals_needed: needed }: Impact): ComponentChildren {
  const who = (
    <>
      <strong>
        <Text>{nameOf(change)}</Text>
      </strong>{' '}
      by <Text>{change.user.name}</Text>
    </>
  )
  if (!rate) return <>No signals yet since {who} went live.</>
  const [value, low, high] = [rate.value, rate.low, rate.high].map(formatExactPercent)
  const level = `${value} positive (between ${low} and ${high})`
  const of = countOf(signals.total, 'signal')
  if (!verdict || !difference) {
    return (
      <>
        Since {who} went live: {level}, {of}.{' '}
        {verdict ? 'The change before it has no signals.' : 'There is no earlier change to compare with.'}
      </>
    )
  }
  const before = formatExactPercent(rate.value - difference.value)
  const points = `${formatPoints(shownDifference(rate, difference))} points, between ${formatPoints(difference.low)} and ${formatPoints(difference.high)}`
  return (
    <>
      {who} {did[verdict]}: {before} → {value} positive ({points}), {of}.
      {verdict === 'undecided' &&
        (needed === null
          ? ' The other change has too few signals to tell.'
          : ` About ${formatNumber(needed)} more signals are needed.`)}
    </>
  )
}

/** How a verdict is reached. */
export const HowWeDecide = () => (
  <details class="fold">
    <summary class="fine">How we decide</summary>
    <div class="prose">
      <p>
        Each change is compared with the one before it: the share of positive signals of each, and an interval for the
        true difference. The interval stays valid however often you look.
      </p>
      <ul>
        <li>
          <Verdict verdict="better" /> or <Verdict verdict="worse" />: the interval does not contain zero.
        </li>
        <li>
          <Verdict verdict="same" />: the whole interval is within five points of zero.
        </li>
        <li>
          <Verdict verdict="undecided" />: neither yet. More signals make the interval narrower.
        </li>
      </ul>
      <p>
        This is a before/after comparison, not an experiment: anything else that changed at the same time is included,
        and so is one person who votes many times.
      </p>
    </div>
  </details>
)
