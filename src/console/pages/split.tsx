import type { Schemas } from '../client/api.ts'
import { changeQuery } from '../client/router.ts'
import { Form, Input } from '../parts/field.tsx'
import { countOf, formatNumber } from '../parts/format.ts'
import { Note } from '../parts/states.tsx'
import { Table } from '../parts/table.tsx'
import { Text } from '../parts/text.tsx'
import { countColumns, rateColumn } from '../parts/verdict.tsx'

type MetadataSplit = Schemas['MetadataSplit']

/** The signals of the range by the values of a field of their metadata. */
export const Split = ({ field, split }: { field: string; split: MetadataSplit | undefined }) => (
  <section>
    <div class="row page-head">
      <h2>By metadata</h2>
      <Form class="row actions" onSubmit={(form) => changeQuery({ split: String(form.get('field')).trim() })}>
        <Input label="Field" name="field" defaultValue={field} placeholder="model" />
        <button type="submit" class="small">
          Split
        </button>
      </Form>
    </div>
    {split && <Values split={split} />}
  </section>
)

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
