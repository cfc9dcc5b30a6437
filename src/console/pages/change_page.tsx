import type { ComponentChildren } from 'preact'
import { isUnknown } from '../../impact/rate.ts'
import { showDifference } from '../../impact/sentence.ts'
import { findLinks } from '../../lib/repository_links.ts'
import { DayLines } from '../chart/day_lines.tsx'
import { reachOf } from '../chart/interval_bar.tsx'
import { get, type Schemas } from '../client/api.ts'
import { useScopes } from '../client/organisation.ts'
import { useQuery } from '../client/query.ts'
import { Authors, ChangeLinks, nameOf, Title } from '../parts/change.tsx'
import { countOf, formatDate, formatNumber, formatPercent } from '../parts/format.ts'
import { Page } from '../parts/page.tsx'
import { Await } from '../parts/states.tsx'
import { FoldedTable } from '../parts/table.tsx'
import { OuterLink, PromptLink, When } from '../parts/text.tsx'
import { Verdict } from '../parts/verdict.tsx'
import { WordDiff } from '../parts/word_diff.tsx'
import { Answer } from './answer.tsx'
import { getImpact } from './change_list.tsx'
import { SignalsLink } from './changes.tsx'
import { NotFound } from './not_found.tsx'

type ChangeDays = Schemas['ChangeDays']
type Day = ChangeDays['days'][number]

/** One change: what it did, the lines that it touched, and how its difference moved since it went live. */
export function ChangePage({ prompt: id, entry }: { prompt: string; entry: number }) {
  const path = { prompt_id: id, entry_id: entry }
  const query = useQuery(get('/api/v1/prompts/{prompt_id}/impact/{entry_id}/days', { path }))
  const { prompt } = useQuery(getImpact(id)).data ?? {}
  if (query.failure?.kind === 'missing') {
    return <NotFound what="Change">It was removed, or another branch is live now.</NotFound>
  }
  const title = query.data ? query.data.data.change.title || nameOf(query.data.data.change) : 'Change'
  return (
    <Page title={title}>
      <Await query={query}>
        {({ data }) => (
          <>
            <Origin impact={data} repository={prompt?.repository ?? null}>
              <PromptLink id={id} name={prompt?.name ?? id} />
            </Origin>
            <Answer impact={data}>
              <SignalsLink prompt={id} impact={data} />
            </Answer>
            <TextChange prompt={id} entry={entry} />
            <Evidence {...data} />
          </>
        )}
      </Await>
    </Page>
  )
}

type OriginProps = { impact: ChangeDays; repository: string | null; children: ComponentChildren }

/** Where the change comes from. */
function Origin({ impact: { change, base }, repository, children }: OriginProps) {
  const compared = base && (findLinks(repository, change.pr_url)?.compare(base.commit_sha, change.commit_sha) ?? null)
  return (
    <p class="detail subtitle">
      {children} · <ChangeLinks change={change} repository={repository} /> · <Authors change={change} />,{' '}
      <When time={change.created_at} />
      {base && compared && (
        <>
          {' · '}
          <OuterLink to={compared}>
            what changed since <Title change={base} />
          </OuterLink>
        </>
      )}
    </p>
  )
}

/** What the change did to the text, where the texts are stored. Otherwise the link to the host has to do. */
function TextChange({ prompt, entry }: { prompt: string; entry: number }) {
  const mayRead = useScopes().includes('prompts:read')
  const path = { prompt_id: prompt, entry_id: entry }
  const asked = get('/api/v1/prompts/{prompt_id}/history/{entry_id}/diff', { path })
  const { before, after, diff } = useQuery(mayRead ? asked : undefined).data?.data ?? {}
  if (typeof after !== 'string' || typeof diff !== 'string') return null
  return (
    <section>
      <h2>What changed</h2>
      {diff === '' ? (
        <p class="detail">The text is the same as before.</p>
      ) : (
        <WordDiff before={before ?? ''} after={after} />
      )}
    </section>
  )
}

/** How the difference moved, and what to look at before believing it. */
function Evidence({ days, health }: ChangeDays) {
  const known = days.flatMap(({ date, difference }) =>
    difference && !isUnknown(difference) ? [{ date, estimate: difference }] : [],
  )
  const reach = scales.find((scale) => scale >= reachOf(known.map(({ estimate }) => estimate))) ?? 1
  const points = `${Math.round(reach * 100)} points`
  return (
    <section>
      <h2>{known.length > 1 ? 'The difference, day by day' : 'Signals'}</h2>
      {known.length > 1 && (
        <>
          <DayLines head={known} scale={[-reach, reach]} labels={[`+${points}`, 'no difference', `−${points}`]} />
          <p class="detail">By the signals up to each day. Computed from the data as it is today.</p>
        </>
      )}
      <p class="detail">
        {countOf(health.change.days, 'day')} with signals since it went live
        {health.base && `, ${countOf(health.base.days, 'day')} before`}. {describeNamed(health.change.named)}
      </p>
      {days.length > 0 && (
        <FoldedTable
          caption="Difference over time"
          rows={days.toReversed()}
          keyOf={({ date }) => date}
          columns={[
            { name: 'Day (UTC)', cell: ({ date }) => formatDate(date) },
            { name: 'Verdict', cell: ({ verdict }) => verdict && <Verdict verdict={verdict} /> },
            { name: 'Difference in points', cell: ({ difference }) => difference && pointsOf(difference) },
            { name: 'Signals', isFigure: true, cell: ({ positive, negative }) => formatNumber(positive + negative) },
          ]}
        />
      )}
    </section>
  )
}

/** The values at the top of the chart. */
const scales = [0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6]

function pointsOf(difference: NonNullable<Day['difference']>): string {
  const { points, low, high } = showDifference({ value: 0, low: 0, high: 0 }, difference)
  return isUnknown(difference) ? points : `${points} (${low} to ${high})`
}

/** How the signals came to belong to the change. */
function describeNamed(share: number | null): string {
  if (share === null) return ''
  if (share === 1) return 'All of its signals name its commit.'
  if (share === 0) return 'None of its signals names its commit: they belong to it by their time.'
  return `${formatPercent(share)} of its signals name its commit; the others belong to it by their time.`
}
