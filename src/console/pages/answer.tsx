import type { ComponentChildren } from 'preact'
import { comparisonKinds, describeChange } from '../../impact/sentence.ts'
import type { Schemas } from '../client/api.ts'
import { Authors, Title } from '../parts/change.tsx'
import { countOf } from '../parts/format.ts'
import { Ours } from '../parts/text.tsx'
import { Verdict, type VerdictName } from '../parts/verdict.tsx'

/** What happened in a sentence; for a verdict, also what kind of comparison it comes from. */
export const Sentence = ({ verdict, text, kind, children }: SentenceProps) => (
  <>
    <p class="answer">
      {verdict && <Verdict isSign verdict={verdict} />} <Ours>{text}</Ours>
    </p>
    {children && <p class="detail">{children}</p>}
    {verdict && (
      <p class="detail">
        {comparisonKinds[kind]} <a href="#why">Why that matters</a>
      </p>
    )}
    {verdict && <HowWeDecide />}
  </>
)

type SentenceProps = {
  verdict: VerdictName | null
  text: string
  kind: keyof typeof comparisonKinds
  children?: ComponentChildren
}

type AnswerProps = { impact: Schemas['Impact']; isChosen?: boolean; children?: ComponentChildren }

/** What happened since a change went live, or compared with another one. */
export const Answer = ({ impact, isChosen = false, children }: AnswerProps) => (
  <Sentence verdict={impact.difference && impact.verdict} text={describeChange(impact, isChosen)} kind="beforeAfter">
    {children ?? (
      <>
        <Title change={impact.change} /> by <Authors change={impact.change} />,{' '}
        {countOf(impact.signals.total, 'signal')}
      </>
    )}
    {impact.wander && `; without changes, the rate wanders by ${impact.wander.points.toFixed(1)} points`}
  </Sentence>
)

/** How a verdict is reached. Browsers open it for a link into it. */
const HowWeDecide = () => (
  <details class="fold">
    <summary class="fine">How we decide</summary>
    <div class="prose" id="why">
      <p>
        The share of positive signals of both sides, and an interval for the true difference. The interval stays valid
        however often you look. Before and after, it also allows for how much the rate wanders without changes: a
        decided verdict may become undecided again when the rate drifts.
      </p>
      <ul>
        <li>
          <Verdict verdict="better" /> or <Verdict verdict="worse" />: the interval does not contain zero.
        </li>
        <li>
          <Verdict verdict="same" />: the whole interval is within five points of zero.
        </li>
        <li>
          <Verdict verdict="undecided" />: neither yet.
        </li>
      </ul>
      <p>
        Before and after, anything else that changed at the same time is part of the difference: a campaign, a new
        model, another season. To know what the change itself does, run both versions at the same time, send the commit
        with each signal, and compare them side by side. One person who votes many times counts many times either way.
      </p>
    </div>
  </details>
)
