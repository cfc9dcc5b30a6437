import { showDifference } from '../../impact/sentence.ts'
import { Sparkline } from '../chart/sparkline.tsx'
import { get } from '../client/api.ts'
import { usePlace } from '../client/router.ts'
import { ChangeLine, Title } from '../parts/change.tsx'
import { Choice, Search, useChoice } from '../parts/filters.tsx'
import { countOf } from '../parts/format.ts'
import { List } from '../parts/list.tsx'
import { Page } from '../parts/page.tsx'
import { Note } from '../parts/states.tsx'
import { hrefOfChange, Named, PromptLink, Text } from '../parts/text.tsx'
import { Rate, Verdict } from '../parts/verdict.tsx'
import { NoPrompts } from './next_step.tsx'

/** The orders of the interface, whose own is the newest first. */
const orders = {
  '': 'last change',
  effect: 'effect, worse first',
  name: 'name',
  rate: 'lowest rate',
  signals: 'most signals',
  newest: 'newest prompt',
}

const kinds = { '': 'all', signals: 'with signals', worse: 'worse', better: 'better' }

/** Every prompt: its signals of the last 30 days, and the effect of its last change. */
export function Prompts() {
  const order = useChoice('sort', orders)
  const sort = order === 'newest' ? null : order || 'last_change'
  const show = useChoice('show', kinds) || null
  const search = usePlace().query.get('find')
  const controls = (
    <>
      <Search />
      <Choice label="Show" name="show" options={kinds} />
      <Choice label="Sort by" name="sort" options={orders} />
    </>
  )
  return (
    <Page title="Prompts" actions={controls}>
      <List
        caption="Prompts"
        hasLines
        pageAt={(cursor) => get('/api/v1/impact', { query: { limit: 100, sort, show, search, cursor } })}
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
              <Named
                name={<PromptLink id={prompt.id} name={prompt.name} />}
                detail={saysMore(prompt) && <Text>{prompt.path as string}</Text>}
              />
            ),
          },
          { name: '30 days', cell: ({ recent }) => recent.total > 0 && <Sparkline days={recent.days} /> },
          {
            name: 'Positive',
            cell: ({ recent: { rate, total } }) =>
              rate ? (
                <Named name={<Rate rate={rate} />} detail={countOf(total, 'signal')} />
              ) : (
                <span class="muted">no signals yet</span>
              ),
          },
          {
            name: 'Effect of last change',
            cell: ({ latest }) =>
              latest?.verdict &&
              latest.rate && (
                <Named
                  name={<Verdict verdict={latest.verdict} />}
                  detail={latest.difference && `${showDifference(latest.rate, latest.difference).points} points`}
                />
              ),
          },
          {
            name: 'Last change',
            cell: ({ prompt, latest }) =>
              latest ? (
                <Named
                  name={
                    <a class="change-title" href={hrefOfChange(prompt.id, latest.change.id)}>
                      <Title change={latest.change} />
                    </a>
                  }
                  detail={<ChangeLine change={latest.change} />}
                />
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
