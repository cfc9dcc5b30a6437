import type { ComponentChildren, ComponentProps } from 'preact'
import { useEffect, useId, useState } from 'preact/hooks'
import { changeQuery } from '../client/router.ts'

type Named = { label: string; hint?: ComponentChildren }
/** What ties a control to its name and its help. */
type Tied = { id: string; 'aria-describedby': string | undefined }

/** A control with its name above it, and a word of help below. */
function Field({ label, hint, children }: Named & { children(tied: Tied): ComponentChildren }) {
  const id = useId()
  return (
    <div class="field">
      <label htmlFor={id}>{label}</label>
      {children({ id, 'aria-describedby': hint ? `${id}-hint` : undefined })}
      {hint && (
        <span class="detail" id={`${id}-hint`}>
          {hint}
        </span>
      )}
    </div>
  )
}

/** Called with the text at each keystroke, and once the field is left. */
type Typing = { onTyping?(text: string): void; onTyped?(text: string): void }

export const Input = ({ label, hint, onTyping, onTyped, ...control }: Named & Typing & ComponentProps<'input'>) => (
  <Field label={label} hint={hint}>
    {(tied) => (
      <input
        {...tied}
        {...control}
        onInput={(event) => onTyping?.(event.currentTarget.value)}
        onChange={(event) => onTyped?.(event.currentTarget.value)}
      />
    )}
  </Field>
)

export const Lines = ({ label, hint, ...control }: Named & ComponentProps<'textarea'>) => (
  <Field label={label} hint={hint}>
    {(tied) => <textarea {...tied} rows={3} {...control} />}
  </Field>
)

type SelectProps = Named & {
  options: [value: string, text: string][]
  name?: string
  value?: string
  onChange?(value: string): void
}

export const Select = ({ label, hint, options, onChange, ...control }: SelectProps) => (
  <Field label={label} hint={hint}>
    {(tied) => (
      <select {...tied} {...control} onChange={(event) => onChange?.(event.currentTarget.value)}>
        {options.map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
    )}
  </Field>
)

type FormProps = { class?: string; onSubmit(form: FormData): void; children: ComponentChildren }

/** A form that the page itself takes care of. */
export function Form({ onSubmit, ...form }: FormProps) {
  const submit = (event: SubmitEvent) => {
    event.preventDefault()
    onSubmit(new FormData(event.currentTarget as HTMLFormElement))
  }
  return <form {...form} onSubmit={submit} />
}

/** How long to wait for further typing before a search. */
const typingMs = 250

/** The search text of a list, which is also in the address. */
export function Search({ search }: { search: string }) {
  const [typed, setTyped] = useState(search)
  useEffect(() => {
    const find = typed.trim()
    if (find === search) return
    const timer = setTimeout(() => changeQuery({ find, cursor: undefined }), typingMs)
    return () => clearTimeout(timer)
  }, [typed])
  return <Input label="Search" type="search" maxLength={200} value={typed} onTyping={setTyped} />
}
