import type { ComponentChildren } from 'preact'
import { useEffect, useId, useState } from 'preact/hooks'
import { changeQuery } from '../client/router.ts'

/** What ties a control to its name and its help. */
type Tied = { id: string; 'aria-describedby': string | undefined }
type FieldProps = { label: string; hint?: ComponentChildren; children(tied: Tied): ComponentChildren }

/** A field with its name above it, and a word of help below. */
export function Field({ label, hint, children }: FieldProps) {
  const id = useId()
  return (
    <div class="field">
      <label htmlFor={id}>{label}</label>
      {children({ id, 'aria-describedby': hint ? `${id}-hint` : undefined })}
      {hint && (
        <span class="hint" id={`${id}-hint`}>
          {hint}
        </span>
      )}
    </div>
  )
}

type SelectProps = {
  value: string
  options: [value: string, text: string][]
  onChange(value: string): void
} & Partial<Tied>

export const Select = ({ value, options, onChange, ...tied }: SelectProps) => (
  <select {...tied} value={value} onChange={(event) => onChange(event.currentTarget.value)}>
    {options.map(([value, text]) => (
      <option key={value} value={value}>
        {text}
      </option>
    ))}
  </select>
)

type InputProps = { value: string; isRequired?: boolean; onInput(value: string): void } & Tied

export const Input = ({ value, isRequired, onInput, ...tied }: InputProps) => (
  <input
    {...tied}
    maxLength={500}
    value={value}
    required={isRequired}
    onInput={(event) => onInput(event.currentTarget.value)}
  />
)

export const NumberInput = ({ value, onInput, ...tied }: InputProps) => (
  <input {...tied} type="number" min={0} value={value} onInput={(event) => onInput(event.currentTarget.value)} />
)

export const Lines = ({ value, isRequired, onInput, ...tied }: InputProps) => (
  <textarea
    {...tied}
    rows={3}
    value={value}
    required={isRequired}
    onInput={(event) => onInput(event.currentTarget.value)}
  />
)

/** Somebody who types is waited for this long before the service is asked. */
const typingMs = 250

/** A text that the rows of a list are found by, in the address once it is typed. */
export function Search({ search }: { search: string }) {
  const [typed, setTyped] = useState(search)
  useEffect(() => {
    const find = typed.trim()
    if (find === search) return
    const timer = setTimeout(() => changeQuery({ find, cursor: undefined }), typingMs)
    return () => clearTimeout(timer)
  }, [typed])
  return (
    <Field label="Find">
      {(tied) => (
        <input
          {...tied}
          type="search"
          maxLength={200}
          value={typed}
          onInput={(event) => setTyped(event.currentTarget.value)}
        />
      )}
    </Field>
  )
}
