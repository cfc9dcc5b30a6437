import { nameAuthors } from '../../impact/sentence.ts'
import { get, type Schemas } from '../client/api.ts'
import { useQuery } from '../client/query.ts'
import { changeQuery, usePlace } from '../client/router.ts'
import { nameOf } from '../parts/change.tsx'
import { Select } from '../parts/field.tsx'
import { formatMoment } from '../parts/format.ts'
import { Page } from '../parts/page.tsx'
import { Await, Note } from '../parts/states.tsx'
import { hrefOfPrompt } from '../parts/text.tsx'
import { Answer } from './answer.tsx'
import { getImpact, PageLinks, readPage } from './change_list.tsx'
import { Changes, toRow } from './changes.tsx'
import { SideBySide } from './side_by_side.tsx'

/** By the value in the address. */
const kinds = { '': 'Two changes, before and after', commit: 'Two commits, side by side' }

/** Compares two versions of a prompt: changes before and after, or commits side by side. */
export function Compare({ prompt }: { prompt: string }) {
  const { query } = usePlace()
  const isSideBySide = query.get('by') === 'commit'
  // Side by side, only the name of the prompt is needed.
  const known = useQuery(getImpact(prompt, isSideBySide ? { limit: 1 } : { page: readPage(query) }))
  return (
    <Page title={`Compare versions of ${known.data?.prompt.name ?? prompt}`}>
      <p class="subtitle">
        <a href={hrefOfPrompt(prompt)}>Back to the prompt</a>
      </p>
      <fieldset class="choice filters">
        <legend class="visually-hidden">Compare</legend>
        {Object.entries(kinds).map(([by, name]) => (
          <button
            key={by}
            type="button"
            class="small"
            aria-pressed={isSideBySide === (by === 'commit')}
            onClick={() => changeQuery({ by, base: undefined, head: undefined, page: undefined })}
          >
            {name}
          </button>
        ))}
      </fieldset>
      {isSideBySide ? (
        <SideBySide prompt={prompt} />
      ) : (
        <Await query={known}>
          {(known) =>
            known.pagination.total_count < 2 ? (
              <Note title="At least two changes are needed" />
            ) : (
              <Choice known={known} />
            )
          }
        </Await>
      )}
    </Page>
  )
}

/** The two changes, chosen from a page of all. A chosen one stays while the user pages through the others. */
function Choice({ known: { data: impacts, pagination, prompt } }: { known: Schemas['ImpactPage'] }) {
  const { query } = usePlace()
  const idOf = (name: string, usual: number) => query.get(name) ?? String(impacts[usual]?.change.id ?? '')
  const [head, base] = [idOf('head', 0), idOf('base', 1)]
  const options = impacts.map(({ change }): [string, string] => [
    String(change.id),
    `${change.title ? `${change.title} · ` : ''}${nameOf(change)} by ${nameAuthors(change)}, ${formatMoment(change.created_at)}`,
  ])
  const all = (id: string): [string, string][] =>
    options.some(([known]) => known === id) ? options : [...options, [id, `entry ${id}`]]
  return (
    <>
      <div class="filters">
        <Select label="Later" value={head} options={all(head)} onChange={(head) => changeQuery({ head, base })} />
        <Select label="Earlier" value={base} options={all(base)} onChange={(base) => changeQuery({ head, base })} />
        <PageLinks pagination={pagination} pageAt={(page) => getImpact(prompt.id, { page })} kept={{ head, base }} />
      </div>
      {head === base || head === '' || base === '' ? (
        <Note title="Choose two different changes" />
      ) : (
        <Pair prompt={prompt} base={Number(base)} head={Number(head)} />
      )}
    </>
  )
}

function Pair({ prompt: { id, repository }, base, head }: { prompt: Schemas['Prompt']; base: number; head: number }) {
  const query = useQuery(get('/api/v1/prompts/{prompt_id}/impact', { path: { prompt_id: id }, query: { base, head } }))
  return (
    <Await query={query}>
      {({ data }) => (
        <>
          {isOlder(data) && (
            <Note title="“Later” is the older of the two">
              <p>The difference is read backwards: from the newer change to the older one.</p>
            </Note>
          )}
          {data[0] && <Answer impact={data[0]} isChosen />}
          <Changes prompt={id} repository={repository} rows={data.map(toRow)} />
        </>
      )}
    </Await>
  )
}

const isOlder = ([head, base]: Schemas['Impact'][]): boolean =>
  head !== undefined && base !== undefined && head.window.from < base.window.from
