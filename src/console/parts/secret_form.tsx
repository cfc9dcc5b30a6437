import type { ComponentChildren, ComponentProps } from 'preact'
import { useState } from 'preact/hooks'
import { Secret } from './copy.tsx'
import { Dialog, FormDialog } from './dialog.tsx'
import { Select } from './field.tsx'

type ShownSecretProps = { title: string; secret: string; of: string; onClose(): void }

/** The only sight of a secret. It closes when it was copied, or its reader says so. */
function ShownSecret({ title, secret, of, onClose }: ShownSecretProps) {
  const [isCopied, setCopied] = useState(false)
  return (
    <Dialog title={title} isKept={!isCopied} onClose={onClose}>
      <p>Copy it now: it is not shown again.</p>
      <Secret text={secret} of={of} onCopied={() => setCopied(true)} />
      <form method="dialog" class="row buttons">
        <button type="submit" class="primary">
          Done
        </button>
      </form>
    </Dialog>
  )
}

type SecretFormProps = Omit<ComponentProps<typeof FormDialog>, 'onSubmit' | 'staysOpen'> & {
  madeTitle: string
  of: string
  /** Null when there is no secret to show. */
  make(form: FormData): Promise<string | null>
}

/** A form that creates something with a secret, which is then shown only once. */
export function SecretForm({ madeTitle, of, make, ...dialog }: SecretFormProps) {
  const [secret, setSecret] = useState<string | null>(null)
  const submit = async (form: FormData) => {
    const made = await make(form)
    setSecret(made)
    if (made === null) dialog.onClose()
  }
  if (secret === null) return <FormDialog {...dialog} staysOpen onSubmit={submit} />
  return <ShownSecret title={madeTitle} secret={secret} of={of} onClose={dialog.onClose} />
}

/** How long an old secret stays valid, by the number of seconds. */
const overlaps = Object.entries({ 0: 'not at all', 3600: 'for 1 hour', 86400: 'for 1 day', 604800: 'for 1 week' })

type RotateFormProps = {
  noun: 'key' | 'secret'
  rotate(body: { overlap_seconds: number }): Promise<string | null>
  onClose(): void
  children: ComponentChildren
}

/** A form that replaces a key or a secret. The old one may stay valid for a while. */
export function RotateForm({ noun, rotate, children, onClose }: RotateFormProps) {
  const [overlap, setOverlap] = useState('86400')
  return (
    <SecretForm
      title={`Rotate ${noun}`}
      does="Rotate"
      madeTitle={`${noun === 'key' ? 'Key' : 'Secret'} rotated`}
      of={`the ${noun}`}
      make={() => rotate({ overlap_seconds: Number(overlap) })}
      onClose={onClose}
    >
      {children}
      <Select label={`Old ${noun} stays valid`} value={overlap} options={overlaps} onChange={setOverlap} />
    </SecretForm>
  )
}
