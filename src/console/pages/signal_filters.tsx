import { useState } from 'preact/hooks'
import type { Schemas } from '../client/api.ts'
import { href } from '../client/router.ts'
import { Form, Input, Select } from '../parts/field.tsx'
import { Choice, filter } from '../parts/filters.tsx'
import { formatMoment } from '../parts/format.ts'
import { Text } from '../parts/text.tsx'

type FiltersProps = {
  prompt: string
  busiest: Schemas['PromptImpactList'] | undefined
  filters: Record<string, string>
}

const values = { '': 'any', positive: 'positive', negative: 'negative' }

/** The prompt and the filters on its signals. */
export function SignalFilters({ prompt, busiest, filters }: FiltersProps) {
  const listed = busiest?.data.map(({ prompt }) => prompt) ?? []
  const names = Map.groupBy(listed, ({ name }) => name)
  const options = listed.map(({ id, name, repository }): [string, string] => {
    return [id, names.get(name)?.length === 1 ? name : `${name} (${repository ?? id})`]
  })
  if (!options.some(([id]) => id === prompt)) options.push([prompt, prompt])
  options.sort(([, a], [, b]) => a.localeCompare(b))
  return (
    <div class="filters">
      <div class="row actions">
        <Select
          label="Prompt"
          value={prompt}
          options={options}
          onChange={(prompt) => filter({ prompt, change: undefined })}
        />
        <Choice label="Value" name="value" options={values} />
        <TimeField name="since" label="From" value={filters.since} />
        <TimeField name="until" label="Before" value={filters.until} />
        <MetadataField />
      </div>
      {busiest?.pagination.next_cursor && (
        <p class="detail">
          Only the {busiest.data.length} prompts with the most signals are listed here. For others, open the{' '}
          <a href={href('/prompts')}>prompt</a> and choose View signals.
        </p>
      )}
      <Chips filters={filters} />
    </div>
  )
}

/** A time in the zone of the user. */
function TimeField({ name, label, value }: { name: string; label: string; value: string | undefined }) {
  const change = (text: string) => {
    const time = new Date(text)
    filter({ [name]: Number.isNaN(time.getTime()) ? undefined : time.toISOString() })
  }
  return <Input label={label} type="datetime-local" value={localTime(value)} onTyped={change} />
}

function localTime(value: string | undefined): string {
  const time = new Date(value ?? '')
  if (Number.isNaN(time.getTime())) return ''
  const local = new Date(time.getTime() - time.getTimezoneOffset() * 60_000)
  return local.toISOString().slice(0, 16)
}

function MetadataField() {
  const [typed, setTyped] = useState('')
  const [isWrong, setWrong] = useState(false)
  const add = () => {
    const [, name, value] = /^\s*([^=]+?)\s*=\s*(.*?)\s*$/.exec(typed) ?? []
    setWrong(typed.trim() !== '' && !(name && value))
    if (!name || !value) return
    filter({ [`metadata.${name}`]: value })
    setTyped('')
  }
  return (
    <Form onSubmit={add}>
      <Input
        label="Metadata"
        placeholder="model = gpt-5"
        problem={isWrong && 'Write a field, = and its value, such as model = gpt-5.'}
        value={typed}
        onTyping={setTyped}
      />
    </Form>
  )
}

/** The active filters. A click removes one. */
function Chips({ filters }: { filters: Record<string, string> }) {
  const entries = Object.entries(filters)
  if (entries.length === 0) return null
  return (
    <ul class="row chips" aria-label="Filters">
      {entries.map(([name, value]) => (
        <li key={name}>
          <button type="button" class="small" onClick={() => filter({ [name]: undefined })}>
            <Text>{describe(name, value)}</Text> <span aria-hidden="true">×</span>
            <span class="visually-hidden">, remove</span>
          </button>
        </li>
      ))}
    </ul>
  )
}

function describe(name: string, value: string): string {
  if (name === 'value') return value
  if (name === 'change') return `of change ${value}`
  if (name.startsWith('metadata.')) return `${name.slice('metadata.'.length)} = ${value}`
  const time = Number.isNaN(Date.parse(value)) ? value : formatMoment(value)
  return `${name === 'since' ? 'from' : 'before'} ${time}`
}
