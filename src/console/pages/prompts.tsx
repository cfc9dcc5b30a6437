import { showDifference } from '../../impact/sentence.ts'
import { Sparkline } from '../chart/sparkline.tsx'
import { get } from '../client/api.ts'
import { changeQuery, usePlace } from '../client/router.ts'
import { ChangeLine } from '../parts/change.tsx'
import { Search, Select } from '../parts/field.tsx'
import { countOf } from '../parts/format.ts'
import { List } from '../parts/list.tsx'
import { Page } from '../parts/page.tsx'
import { Note } from '../parts/states.tsx'
import { hrefOfChange, PromptLink, Text } from '../parts/text.tsx'
import { Rate, Verdict } from '../parts/verdict.tsx'
import { NoPrompts } from './next_step.tsx'

/** The orders of the interface, and its own without one. */
const orders = {
  last_change: 'last change',
  effect: 'effect, worse first',
  name: 'name',
  rate: 'lowest rate',
  signals: 'most signals',
  newest: 'newest prompt',
}

const kindNames = { '': 'all', signals: 'with signals', worse: 'worse', better: 'better' }
const kinds = Object.entries(kindNames)

/** Every prompt: its signals of the last 30 days, and the effect of its last change. */
export function Prompts() {
  const { query } = usePlace()
  const sort = query.get('sort') ?? ''
  const order = Object.hasOwn(orders, sort) ? (sort as keyof typeof orders) : 'last_change'
  const search = query.get('find') ?? ''
  const show = kinds.some(([kind]) => kind === query.get('show')) ? (query.get('show') as keyof typeof kindNames) : ''
  const choose = (sort: string) => changeQuery({ sort: sort === 'last_change' ? undefined : sort, cursor: undefined })
  const controls = (
    <>
      <Search search={search} />
      <Select label="Show" value={show} options={kinds} onChange={(show) => changeQuery({ show, cursor: undefined })} />
      <Select label="Sort by" value={order} options={Object.entries(orders)} onChange={choose} />
    </>
  )
  return (
    <Page title="Prompts" actions={controls}>
      <List
        caption="Prompts"
        hasLines
        pageAt={(cursor) =>
          get('/api/v1/impact', {
            query: { limit: 100, sort: order === 'newest' ? null : order, show: show || null, search, cursor },
          })
        }
        keepPrevious
        words={['First page', 'Next page']}
        empty={() =>
          search || show ? <Note title={search ? `No prompts match “${search}”` : 'No prompts match'} /> : <NoPrompts />
        }
        keyOf={({ prompt }) => prompt.id}
        columns={[
          {
            name: 'Prompt',
            cell: ({ prompt }) => (
              <>
                <PromptLink id={prompt.id} name={prompt.name} />
                {saysMore(prompt) && (
                  <span class="detail cut">
                    <Text>{prompt.path as string}</Text>
                  </span>
                )}
              </>
            ),
          },
          { name: '30 days', cell: ({ recent }) => recent.total > 0 && <Sparkline days={recent.days} /> },
          {
            name: 'Positive',
            cell: ({ recent: { rate, total } }) =>
              rate ? (
                <>
                  <Rate rate={rate} />
                  <span class="detail">{countOf(total, 'signal')}</span>
                </>
              ) : (
                <span class="muted">no signals yet</span>
              ),
          },
          {
            name: 'Effect of last change',
            cell: ({ latest }) =>
              latest?.verdict &&
              latest.rate && (
                <>
                  <Verdict verdict={latest.verdict} />
                  {latest.difference && (
                    <span class="detail">{showDifference(latest.rate, latest.difference).points} points</span>
                  )}
                </>
              ),
          },
          {
            name: 'Last change',
            cell: ({ prompt, latest }) =>
              latest ? (
                <>
                  {latest.change.title && (
                    <a class="cut change-title" href={hrefOfChange(prompt.id, latest.change.id)}>
                      <Text>{latest.change.title}</Text>
                    </a>
                  )}
                  <span class={latest.change.title ? 'detail cut' : 'cut'}>
                    <ChangeLine change={latest.change} />
                  </span>
                </>
              ) : (
                <span class="muted">none recorded</span>
              ),
          },
        ]}
      />
    </Page>
  )
}

/** Whether the path of a prompt tells more than its name, which sync takes from it. */
const saysMore = ({ name, path }: { name: string; path: string | null }): boolean =>
  path !== null && !`/${path}`.replace(/\.[^./]+$/, '').endsWith(`/${name}`)
