import { isUnknown } from '../../impact/rate.ts'
import { nameAuthors, showDifference } from '../../impact/sentence.ts'
import { findLinks } from '../../lib/repository_links.ts'
import { DayLines } from '../chart/day_lines.tsx'
import { reachOf } from '../chart/interval_bar.tsx'
import { get, type Schemas } from '../client/api.ts'
import { useScopes } from '../client/organisation.ts'
import { useQuery } from '../client/query.ts'
import { hrefWith } from '../client/router.ts'
import { ChangeLinks, Title } from '../parts/change.tsx'
import { countOf, formatDate, formatNumber, formatPercent } from '../parts/format.ts'
import { Await } from '../parts/states.tsx'
import { FoldedTable } from '../parts/table.tsx'
import { OuterLink, Text, When } from '../parts/text.tsx'
import { Verdict } from '../parts/verdict.tsx'
import { WordDiff } from '../parts/word_diff.tsx'

type ChangeDays = Schemas['ChangeDays']
type Day = ChangeDays['days'][number]
type DetailProps = { prompt: string; entry: number; repository: string | null }

/** One change: how its difference moved since it went live, and what to look at before believing it. */
export function ChangeDetail({ prompt, entry, repository }: DetailProps) {
  const path = { prompt_id: prompt, entry_id: entry }
  const query = useQuery(get('/api/v1/prompts/{prompt_id}/impact/{entry_id}/days', { path }))
  return (
    <section class="change-detail">
      <Await query={query}>
        {({ data: { change, base, days, health } }) => (
          <>
            <div class="row page-head">
              <h2 ref={focus} tabIndex={-1}>
                <Title change={change} />
              </h2>
              <div class="row actions">
                <a href={hrefWith({ change: undefined })}>Close</a>
              </div>
            </div>
            <p class="detail subtitle">
              <ChangeLinks change={change} repository={repository} /> · <Text>{nameAuthors(change)}</Text>,{' '}
              <When time={change.created_at} />
              {base && (
                <>
                  {' · '}
                  <OuterLink
                    to={findLinks(repository, change.pr_url)?.compare(base.commit_sha, change.commit_sha) ?? null}
                  >
                    what changed since <Title change={base} />
                  </OuterLink>
                </>
              )}
            </p>
            <TextChange prompt={prompt} entry={entry} />
            <Differences days={days} />
            <p class="detail">
              The difference from the change it is compared with, by the signals up to each day. Computed from the data
              as it is today.
            </p>
            <DayTable days={days} />
            <Health health={health} />
          </>
        )}
      </Await>
    </section>
  )
}

/** Takes a reader who does not see the page to what was opened. The same function at every render, to do so once. */
const focus = (heading: HTMLElement | null) => heading?.focus({ preventScroll: true })

/** What the change did to the text, where the texts are stored. Otherwise the link to the host has to do. */
function TextChange({ prompt, entry }: { prompt: string; entry: number }) {
  const mayRead = useScopes().includes('prompts:read')
  const path = { prompt_id: prompt, entry_id: entry }
  const asked = get('/api/v1/prompts/{prompt_id}/history/{entry_id}/diff', { path })
  const { before, after, diff } = useQuery(mayRead ? asked : undefined).data?.data ?? {}
  if (typeof after !== 'string' || typeof diff !== 'string') return null
  if (diff === '') return <p class="detail">The text is the same as before.</p>
  return <WordDiff before={before ?? ''} after={after} />
}

/** How the difference and its interval moved over the days. */
function Differences({ days }: { days: Day[] }) {
  const known = days.flatMap(({ date, difference }) =>
    difference && !isUnknown(difference) ? [{ date, estimate: difference }] : [],
  )
  const reach = reachOf(known.map(({ estimate }) => estimate))
  const points = `${Math.round(reach * 100)} points`
  return <DayLines head={known} scale={[-reach, reach]} labels={[`+${points}`, 'no difference', `−${points}`]} />
}

const DayTable = ({ days }: { days: Day[] }) => (
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
)

function pointsOf(difference: NonNullable<Day['difference']>): string {
  const { points, low, high } = showDifference({ value: 0, low: 0, high: 0 }, difference)
  return isUnknown(difference) ? points : `${points} (${low} to ${high})`
}

/** What to look at before believing a difference. */
const Health = ({ health: { base, change } }: { health: ChangeDays['health'] }) => (
  <ul class="detail">
    <li>
      {countOf(change.days, 'day')} with signals since it went live
      {base && `, ${countOf(base.days, 'day')} before`}.
    </li>
    {change.named !== null && (
      <li>{formatPercent(change.named)} of its signals name its commit; the others belong to it by their time.</li>
    )}
  </ul>
)
