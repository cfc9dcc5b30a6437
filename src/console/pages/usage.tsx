import { DayBars } from '../chart/day_bars.tsx'
import { get, type Schemas } from '../client/api.ts'
import { useQuery } from '../client/query.ts'
import { countOf, formatDate, formatDay, formatNumber, formatPercent } from '../parts/format.ts'
import { Page } from '../parts/page.tsx'
import { Await, Note } from '../parts/states.tsx'
import { type Column, FoldedTable, Table } from '../parts/table.tsx'
import { LimitMeter, Named, PromptLink, Text } from '../parts/text.tsx'

type UsageData = Schemas['UsageData']

const total: Column<{ total: number }> = { name: 'Signals', isFigure: true, cell: ({ total }) => formatNumber(total) }

/** The month against its limit, by day and by prompt. */
export function Usage() {
  const query = useQuery(get('/api/v1/usage', {}))
  return (
    <Page title="Usage">
      <Await query={query}>
        {({ data }) => (
          <>
            <Outlook usage={data} />
            <section>
              <h2>By day</h2>
              <DayBars days={data.days} />
              <FoldedTable
                caption="Signals by day"
                rows={data.days.toReversed()}
                keyOf={({ date }) => date}
                columns={[{ name: 'Day (UTC)', cell: ({ date }) => formatDate(date) }, total]}
              />
            </section>
            <ByPrompt usage={data} />
          </>
        )}
      </Await>
    </Page>
  )
}

/** How much is used, and the forecast at the rate of this month. */
function Outlook({ usage: { used, limit, remaining, resets_at: resetsAt, month, plan } }: { usage: UsageData }) {
  const [now, start, end] = [Date.now(), Date.parse(`${month}-01T00:00:00Z`), Date.parse(resetsAt)]
  const perMs = used / Math.max(1, now - start)
  const endsAt = perMs > 0 ? now + remaining / perMs : Number.POSITIVE_INFINITY
  const atEnd = used + perMs * (end - now)
  return (
    <>
      <p class="answer">
        {formatNumber(used)} of {countOf(limit, 'signal')} used this month
        {limit > 0 && ` (${formatPercent(used / limit)})`}.{' '}
        {used >= limit
          ? `No more signals are recorded until ${formatDay(resetsAt)}.`
          : endsAt < end
            ? `At this rate you will reach the limit on ${formatDay(new Date(endsAt))}.`
            : used > 0 && `At this rate you will use about ${formatNumber(Math.round(atEnd))} this month.`}
      </p>
      <p class="muted">
        <Text>{plan[0]?.toUpperCase() + plan.slice(1)}</Text> plan. The count resets on {formatDay(resetsAt)}.
      </p>
      <LimitMeter class="wide" used={used} limit={limit} label="Used this month" />
    </>
  )
}

function ByPrompt({ usage: { prompts, other_prompts: others, used } }: { usage: UsageData }) {
  return (
    <section>
      <h2>By prompt</h2>
      {others.prompts > 0 && (
        <p class="muted">
          The busiest prompts. {countOf(others.prompts, 'other prompt')} had {countOf(others.total, 'signal')}.
        </p>
      )}
      {prompts.length === 0 ? (
        <Note title="No signals this month" />
      ) : (
        <Table
          caption="Signals by prompt"
          rows={prompts}
          keyOf={({ prompt }) => prompt}
          columns={[
            {
              name: 'Prompt',
              cell: ({ prompt, name, repository }) => (
                <Named name={<PromptLink id={prompt} name={name} />} detail={repository && <Text>{repository}</Text>} />
              ),
            },
            {
              name: 'Share',
              cell: ({ total }) => (
                <span class="row">
                  <meter min={0} max={Math.max(used, 1)} value={total} aria-label="Share of the month" />
                  {formatPercent(total / Math.max(used, 1))}
                </span>
              ),
            },
            total,
          ]}
        />
      )}
    </section>
  )
}
