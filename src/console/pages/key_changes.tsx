import { useState } from 'preact/hooks'
import { answerOf, api } from '../client/api.ts'
import { useSending } from '../client/form.ts'
import { refresh } from '../client/query.ts'
import type { Schemas } from '../client/schemas.ts'
import { Secret } from '../parts/copy.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { Field, Select } from '../parts/field.tsx'
import { FailureNote } from '../parts/states.tsx'
import { Text } from '../parts/text.tsx'

type Key = Schemas['ApiKey']

const overlaps: [string, string][] = [
  ['0', 'not at all'],
  ['3600', 'for an hour'],
  ['86400', 'for a day'],
  ['604800', 'for a week'],
]

export function RotateKey({ apiKey: { id, name }, onClose }: { apiKey: Key; onClose(): void }) {
  const [overlap, setOverlap] = useState('86400')
  const [made, setMade] = useState<string>()
  const { isSending, failure, send } = useSending()
  const submit = (event: Event) => {
    event.preventDefault()
    send(async () => {
      const { data } = await answerOf(
        api.POST('/api/v1/keys/{key_id}/rotate', {
          params: { path: { key_id: id } },
          body: { overlap_seconds: Number(overlap) },
        }),
      )
      setMade(data.key ?? undefined)
      refresh('keys', 'audit')
    })
  }
  if (made !== undefined) return <ShownOnce title="The key was rotated" text={made} onClose={onClose} />
  return (
    <Dialog title="Rotate the key" onClose={onClose}>
      <form onSubmit={submit}>
        <p>
          Makes a key in the place of <Text>{name}</Text>, with the same rights.
        </p>
        <Field label="The old one works on">
          {(tied) => <Select {...tied} value={overlap} options={overlaps} onChange={setOverlap} />}
        </Field>
        {failure && <FailureNote failure={failure} />}
        <DialogButtons isSending={isSending} does="Rotate" onClose={onClose} />
      </form>
    </Dialog>
  )
}

export function RevokeKey({ apiKey: { id, name }, isOwn, onClose }: { apiKey: Key; isOwn: boolean; onClose(): void }) {
  const { isSending, failure, send } = useSending()
  const submit = (event: Event) => {
    event.preventDefault()
    send(async () => {
      await answerOf(api.DELETE('/api/v1/keys/{key_id}', { params: { path: { key_id: id } } }))
      refresh('keys', 'audit')
      onClose()
    })
  }
  return (
    <Dialog title="Revoke the key" onClose={onClose}>
      <form onSubmit={submit}>
        <p>
          <Text>{name}</Text> is refused everywhere within a second, for good.
        </p>
        {isOwn && <p>It is the key that you are signed in with.</p>}
        {failure && <FailureNote failure={failure} />}
        <DialogButtons isSending={isSending} does="Revoke" onClose={onClose} />
      </form>
    </Dialog>
  )
}

export const ShownOnce = ({ title, text, onClose }: { title: string; text: string; onClose(): void }) => (
  <Dialog title={title} onClose={onClose}>
    <p>Keep it now: it is not shown again.</p>
    <Secret text={text} of="the key" />
    <form method="dialog" class="buttons">
      <button type="submit" class="primary">
        Done
      </button>
    </form>
  </Dialog>
)

type ButtonsProps = { isSending: boolean; does: string; onClose(): void }

export const DialogButtons = ({ isSending, does, onClose }: ButtonsProps) => (
  <div class="buttons">
    <button type="button" onClick={onClose}>
      Cancel
    </button>
    <button type="submit" class="primary" disabled={isSending}>
      {does}
    </button>
  </div>
)
