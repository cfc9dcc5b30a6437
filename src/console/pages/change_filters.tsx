import { useState } from 'preact/hooks'
import { changeQuery } from '../client/router.ts'
import type { Schemas } from '../client/schemas.ts'
import { Field, Select } from '../parts/field.tsx'

/** Empty texts are no filter. */
export type Filters = { action: string; branch: string; time: string }

export const readChangeFilters = (query: URLSearchParams): Filters => ({
  action: query.get('action') ?? '',
  branch: query.get('branch') ?? '',
  time: query.get('time') ?? '',
})

/** The actions of changes that went live. */
export const liveActions: Schemas['HistoryEntry']['action'][] = ['deployed', 'pr_merged']

const liveChoices: [string, string][] = [
  ['', 'went live'],
  ['deployed', 'deployed'],
  ['pr_merged', 'merged'],
]

/** Those that need the whole history. */
const otherChoices: [string, string][] = [
  ['pr_opened', 'opened'],
  ['pr_closed', 'closed'],
  ['deployed,pr_merged,pr_opened,pr_closed', 'everything'],
]

const times: [string, string][] = [
  ['', 'any time'],
  ['chart', 'that of the chart'],
]

/** Which changes are listed. */
export function ChangeFilters({ action, branch, time, mayReadHistory }: Filters & { mayReadHistory: boolean }) {
  const actions = [...liveChoices, ...(mayReadHistory ? otherChoices : [])]
  const [typed, setTyped] = useState(branch)
  const change = (filter: Partial<Filters>) => changeQuery({ ...filter, page: undefined })
  const submit = (event: Event) => {
    event.preventDefault()
    change({ branch: typed.trim() })
  }
  return (
    <>
      <Field label="Action">
        {(tied) => <Select {...tied} value={action} options={actions} onChange={(action) => change({ action })} />}
      </Field>
      <Field label="Time">
        {(tied) => <Select {...tied} value={time} options={times} onChange={(time) => change({ time })} />}
      </Field>
      <form onSubmit={submit}>
        <Field label="Branch">
          {(tied) => (
            <input
              {...tied}
              type="search"
              value={typed}
              onInput={(event) => setTyped(event.currentTarget.value)}
              onChange={submit}
            />
          )}
        </Field>
      </form>
    </>
  )
}
