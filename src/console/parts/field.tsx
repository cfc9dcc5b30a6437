import type { ComponentChildren, ComponentProps } from 'preact'
import { useId } from 'preact/hooks'
import { Text } from './text.tsx'

type Named = { label: string; hint?: ComponentChildren; problem?: string | false | undefined }
/** What ties a control to its name and its help. */
type Tied = { id: string; 'aria-describedby': string | undefined; 'aria-invalid': true | undefined }

/** A control with its name above it, and below it a word of help or what is wrong. */
function Field({ label, hint, problem, children }: Named & { children(tied: Tied): ComponentChildren }) {
  const id = useId()
  const describedBy = problem ? `${id}-problem` : hint ? `${id}-hint` : undefined
  return (
    <div class="field">
      <label htmlFor={id}>{label}</label>
      {children({ id, 'aria-describedby': describedBy, 'aria-invalid': problem ? true : undefined })}
      {problem && (
        <span class="detail problem" role="alert" id={`${id}-problem`}>
          {problem}
        </span>
      )}
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

type InputProps = Named & Typing & ComponentProps<'input'>

export const Input = ({ label, hint, problem, onTyping, onTyped, ...control }: InputProps) => (
  <Field label={label} hint={hint} problem={problem}>
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

type ChecksProps = {
  legend: string
  hint?: string
  name: string
  /** Each with its name in the interface or the repository, if any. */
  options: [value: string, text: string, code: string | null][]
  chosen: string[]
  isHidden?: boolean
  /** Many options have a box that scrolls. */
  isLong?: boolean
}

/** Boxes to tick, each beside its words. */
export const Checks = ({ legend, hint, name, options, chosen, isHidden, isLong }: ChecksProps) => (
  <fieldset hidden={isHidden}>
    <legend>{legend}</legend>
    {hint && <span class="detail">{hint}</span>}
    <div class={isLong ? 'choices' : ''}>
      {options.map(([value, text, code]) => (
        <label key={value} class="row check">
          <input type="checkbox" name={name} value={value} defaultChecked={chosen.includes(value)} />
          <span>
            <Text>{text}</Text> {code && <code>{code}</code>}
          </span>
        </label>
      ))}
    </div>
  </fieldset>
)
