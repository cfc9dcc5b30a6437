import type { ComponentChildren } from 'preact'
import type { Schemas } from '../client/schemas.ts'
import { nameOf } from '../parts/change.tsx'
import { countOf, formatNumber, formatPercent } from '../parts/format.ts'
import { Text } from '../parts/text.tsx'
import { formatPoints, Verdict, type VerdictName } from '../parts/verdict.tsx'

type Impact = Schemas['Impact']

/** What the change did, in a sentence. */
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
  same: 'made no difference that matters',
  undecided: 'has not been decided yet',
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
  const level = `${formatPercent(rate.value)} positive (between ${formatPercent(rate.low)} and ${formatPercent(rate.high)})`
  const of = countOf(signals.total, 'signal')
  if (!verdict || !difference) {
    return (
      <>
        Since {who} went live: {level}, {of}. There is nothing before it to compare with.
      </>
    )
  }
  const before = formatPercent(rate.value - difference.value)
  const points = `${formatPoints(difference.value)} points, between ${formatPoints(difference.low)} and ${formatPoints(difference.high)}`
  return (
    <>
      {who} {did[verdict]}: {before} → {formatPercent(rate.value)} positive ({points}), {of}.
      {verdict === 'undecided' &&
        (needed === null
          ? ' More signals of it alone would not tell: the other change has too few.'
          : ` About ${formatNumber(needed)} more would tell.`)}
    </>
  )
}

/** How a verdict comes about, one click away. */
export const HowWeDecide = () => (
  <details class="fold">
    <summary class="fine">How we decide</summary>
    <div class="prose">
      <p>
        Each change is compared with the one before it: the share of positive signals that belong to each, and an
        interval that the true difference lies in. The interval stays valid however often one looks.
      </p>
      <ul>
        <li>
          <Verdict verdict="better" /> or <Verdict verdict="worse" />: no difference at all is outside of the interval.
        </li>
        <li>
          <Verdict verdict="same" />: the whole interval is within five points of no difference.
        </li>
        <li>
          <Verdict verdict="undecided" />: neither yet. More signals make the interval shorter.
        </li>
      </ul>
      <p>
        Before and after are not a trial: what else changed on that day is in the difference, too, and so is one person
        who votes many times.
      </p>
    </div>
  </details>
)
