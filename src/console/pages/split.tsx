import { useState } from 'preact/hooks'
import { rateOf } from '../../impact/rate.ts'
import { changeQuery } from '../client/router.ts'
import type { Schemas } from '../client/schemas.ts'
import { Field } from '../parts/field.tsx'
import { countOf, formatNumber } from '../parts/format.ts'
import { Empty } from '../parts/states.tsx'
import { Table } from '../parts/table.tsx'
import { Text } from '../parts/text.tsx'
import { Rate } from '../parts/verdict.tsx'

type MetadataSplit = Schemas['MetadataSplit']
type Row = { name: string; isRest: boolean; positive: number; negative: number; total: number }

/** The signals of the range by the values of a field of their metadata. */
export function Split({ field, split }: { field: string; split: MetadataSplit | undefined }) {
  const [typed, setTyped] = useState(field)
  const submit = (event: Event) => {
    event.preventDefault()
    changeQuery({ split: typed.trim() })
  }
  return (
    <section>
      <div class="page-head">
        <h2>By metadata</h2>
        <form class="actions" onSubmit={submit}>
          <Field label="Field">
            {(tied) => (
              <input
                {...tied}
                value={typed}
                placeholder="model"
                onInput={(event) => setTyped(event.currentTarget.value)}
              />
            )}
          </Field>
          <button type="submit" class="small">
            Split
          </button>
        </form>
      </div>
      {split && <Values split={split} />}
    </section>
  )
}

function Values({ split }: { split: MetadataSplit }) {
  const { values, rest, none } = split
  const rows: Row[] = [
    ...values.map(({ value, ...counts }) => ({ ...counts, name: value, isRest: false })),
    ...(rest.total > 0 ? [{ ...rest, name: countOf(rest.values, 'other value'), isRest: true }] : []),
    ...(none.total > 0 ? [{ ...none, name: 'without this field', isRest: true }] : []),
  ]
  if (rows.length === 0) return <Empty title="No signals in this time" />
  return (
    <>
      {!split.complete && <p class="muted">Of the newest {formatNumber(split.signals)} signals of this time.</p>}
      <Table
        caption={`Signals by ${split.key}`}
        rows={rows}
        keyOf={({ name, isRest }) => `${isRest} ${name}`}
        columns={[
          {
            name: 'Value',
            cell: ({ name, isRest }) => (isRest ? <span class="muted">{name}</span> : <Text>{name}</Text>),
          },
          {
            name: 'Share of positive',
            cell: (counts) => {
              const rate = rateOf(counts)
              return rate && <Rate rate={rate} />
            },
          },
          { name: 'Positive', isFigure: true, cell: ({ positive }) => formatNumber(positive) },
          { name: 'Negative', isFigure: true, cell: ({ negative }) => formatNumber(negative) },
        ]}
      />
    </>
  )
}
