import { useState } from 'preact/hooks'
import { get, type Schemas } from '../client/api.ts'
import { useQuery } from '../client/query.ts'
import { changeQuery } from '../client/router.ts'
import { Form, Input } from '../parts/field.tsx'
import { countOf, formatNumber } from '../parts/format.ts'
import { Note } from '../parts/states.tsx'
import { Table } from '../parts/table.tsx'
import { Text } from '../parts/text.tsx'
import { countColumns, rateColumn } from '../parts/verdict.tsx'

type MetadataSplit = Schemas['MetadataSplit']

/** The signals of the range by the values of a field of their metadata. */
export const Split = ({ prompt, field, split }: SplitProps) => (
  <section>
    <div class="row page-head">
      <h2>By metadata</h2>
      <Form class="row actions" onSubmit={(form) => changeQuery({ split: String(form.get('field')).trim() })}>
        <FieldInput prompt={prompt} field={field} />
        <button type="submit" class="small">
          Split
        </button>
      </Form>
    </div>
    {split && <Values split={split} />}
  </section>
)

type SplitProps = { prompt: string; field: string; split: MetadataSplit | undefined }

/** Suggests the fields of the newest signals, which are asked for when somebody is about to choose. */
function FieldInput({ prompt, field }: Omit<SplitProps, 'split'>) {
  const [isReached, setReached] = useState(false)
  const newest = get('/api/v1/prompts/{prompt_id}/signals', { path: { prompt_id: prompt }, query: { limit: 100 } })
  const { data } = useQuery(isReached ? newest : undefined)
  const fields = new Set(data?.data.flatMap(({ metadata }) => Object.keys(metadata ?? {})))
  return (
    <>
      <Input
        label="Field"
        name="field"
        list="fields"
        placeholder="model"
        defaultValue={field}
        onFocus={() => setReached(true)}
      />
      <datalist id="fields">
        {[...fields].sort().map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
    </>
  )
}

function Values({ split: { key, values, rest, none, complete, signals } }: { split: MetadataSplit }) {
  const rows = [
    ...values.map(({ value, ...counts }) => ({ ...counts, name: value, isRest: false })),
    { ...rest, name: countOf(rest.values, 'other value'), isRest: true },
    { ...none, name: 'without this field', isRest: true },
  ].filter(({ total }) => total > 0)
  if (rows.length === 0) return <Note title="No signals in this range" />
  return (
    <>
      {!complete && <p class="muted">Of the newest {formatNumber(signals)} signals in this range.</p>}
      <Table
        caption={`Signals by ${key}`}
        rows={rows}
        keyOf={({ name, isRest }) => `${isRest} ${name}`}
        columns={[
          {
            name: 'Value',
            cell: ({ name, isRest }) => (isRest ? <span class="muted">{name}</span> : <Text>{name}</Text>),
          },
          rateColumn,
          ...countColumns,
        ]}
      />
    </>
  )
}
