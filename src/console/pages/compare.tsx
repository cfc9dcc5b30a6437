import { answerOf, api } from '../client/api.ts'
import { useQuery } from '../client/query.ts'
import { href } from '../client/root.ts'
import { changeQuery, usePlace } from '../client/router.ts'
import type { Schemas } from '../client/schemas.ts'
import { nameOf } from '../parts/change.tsx'
import { Field, Select } from '../parts/field.tsx'
import { formatMoment } from '../parts/format.ts'
import { Page } from '../parts/page.tsx'
import { Await, Empty } from '../parts/states.tsx'
import { Answer, HowWeDecide } from './answer.tsx'
import { askingImpact, PageLinks, readPage } from './change_list.tsx'
import { Changes } from './changes.tsx'

/** Any two changes of a prompt, the later against the earlier. */
export function Compare({ params }: { params: Record<string, string> }) {
  const prompt = params.prompt_id as string
  const ask = (page: number) => askingImpact(prompt, { page })
  const known = useQuery(...ask(readPage(usePlace().query)))
  return (
    <Page title={known.data ? `Two changes of ${known.data.prompt.name}` : 'Compare two changes'}>
      <p>
        <a href={href(`/prompts/${encodeURIComponent(prompt)}`)}>Back to the prompt</a>
      </p>
      <Await query={known}>
        {(known) =>
          known.pagination.total_count < 2 ? (
            <Empty title="There are no two changes yet" />
          ) : (
            <Choice prompt={prompt} known={known} ask={ask} />
          )
        }
      </Await>
    </Page>
  )
}

type ImpactPage = Schemas['ImpactPage']
type ChoiceProps = { prompt: string; known: ImpactPage; ask(page: number): [string, () => Promise<ImpactPage>] }

/** The two changes, chosen from a page of all; one that was chosen stays while the others are looked through. */
function Choice({
  prompt,
  known: {
    data: impacts,
    pagination,
    prompt: { repository },
  },
  ask,
}: ChoiceProps) {
  const { query } = usePlace()
  const [head, base] = [
    query.get('head') ?? String(impacts[0]?.change.id ?? ''),
    query.get('base') ?? String(impacts[1]?.change.id ?? ''),
  ]
  const options = impacts.map(({ change }): [string, string] => [
    String(change.id),
    `${nameOf(change)} by ${change.user.name}, ${formatMoment(change.created_at)}`,
  ])
  const all = (id: string): [string, string][] =>
    options.some(([known]) => known === id) ? options : [...options, [id, `entry ${id}`]]
  return (
    <>
      <div class="filters">
        <Field label="Later">
          {(tied) => (
            <Select {...tied} value={head} options={all(head)} onChange={(head) => changeQuery({ head, base })} />
          )}
        </Field>
        <Field label="Earlier">
          {(tied) => (
            <Select {...tied} value={base} options={all(base)} onChange={(base) => changeQuery({ head, base })} />
          )}
        </Field>
        <PageLinks pagination={pagination} ask={ask} kept={{ head, base }} />
      </div>
      {head === base || head === '' || base === '' ? (
        <Empty title="Choose two that differ" />
      ) : (
        <Pair prompt={prompt} repository={repository} base={base} head={head} />
      )}
    </>
  )
}

type PairProps = { prompt: string; repository: string | null; base: string; head: string }

function Pair({ prompt, repository, base, head }: PairProps) {
  const query = useQuery(`impact of ${prompt} ${base} ${head}`, () =>
    answerOf(
      api.GET('/api/v1/prompts/{prompt_id}/impact', {
        params: { path: { prompt_id: prompt }, query: { base: Number(base), head: Number(head) } },
      }),
    ),
  )
  return (
    <Await query={query}>
      {({ data }) => (
        <>
          {data[0] && <Answer impact={data[0]} />}
          <HowWeDecide />
          <Changes
            prompt={prompt}
            repository={repository}
            rows={data.map((impact) => ({ change: impact.change, impact }))}
          />
        </>
      )}
    </Await>
  )
}
