import { useScopes } from '../client/organisation.ts'
import { changeQuery, usePlace } from '../client/router.ts'
import { Input, Select } from '../parts/field.tsx'

const times = Object.entries({ '': 'any time', chart: 'as in the chart' })

const liveActions = { '': 'went live', deployed: 'deployed', pr_merged: 'merged' }

const allActions = {
  ...liveActions,
  pr_opened: 'opened',
  pr_closed: 'closed',
  'deployed,pr_merged,pr_opened,pr_closed': 'everything',
}

/** The filters of the list of changes. */
export function ChangeFilters() {
  const { query } = usePlace()
  const actions = useScopes().includes('history:read') ? allActions : liveActions
  const given = (name: string) => query.get(name) ?? ''
  const change = (name: string) => (value: string) => changeQuery({ [name]: value.trim(), page: undefined })
  return (
    <>
      <Select label="Action" value={given('action')} options={Object.entries(actions)} onChange={change('action')} />
      <Select label="Time" value={given('time')} options={times} onChange={change('time')} />
      <Input label="Branch" type="search" defaultValue={given('branch')} onTyped={change('branch')} />
    </>
  )
}
