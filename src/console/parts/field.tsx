import type { ComponentChildren } from 'preact'

type FieldProps = { label: string; hint?: ComponentChildren; children: ComponentChildren }

/** A field with its name above it, and a word of help below. */
export const Field = ({ label, hint, children }: FieldProps) => (
  // biome-ignore lint/a11y/noLabelWithoutControl: the control is among the children
  <label class="field">
    <span class="field-name">{label}</span>
    {children}
    {hint && <span class="hint">{hint}</span>}
  </label>
)

type SelectProps = { value: string; options: [value: string, text: string][]; onChange(value: string): void }

export const Select = ({ value, options, onChange }: SelectProps) => (
  <select value={value} onChange={(event) => onChange(event.currentTarget.value)}>
    {options.map(([value, text]) => (
      <option key={value} value={value}>
        {text}
      </option>
    ))}
  </select>
)
