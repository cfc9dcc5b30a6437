import type { ComponentProps } from 'preact'
import { useState } from 'preact/hooks'
import { answerOf, api } from '../client/api.ts'
import { useScopes } from '../client/organisation.ts'
import { refresh } from '../client/query.ts'
import type { Schemas, Scope } from '../client/schemas.ts'
import { Secret } from '../parts/copy.tsx'
import { Dialog, FormDialog } from '../parts/dialog.tsx'
import { Input, Lines, Select } from '../parts/field.tsx'
import { scopes as allScopes, meanings, type Preset, presets } from '../parts/scopes.ts'
import { Text } from '../parts/text.tsx'

type KeyFormProps = Omit<ComponentProps<typeof FormDialog>, 'onSubmit'> & {
  madeTitle: string
  make(form: FormData): Promise<{ data: { key: string | null } }>
}

const refreshKeys = () => refresh('/api/v1/keys', '/api/v1/audit')

/** A form that creates a key, which is then shown only once. */
function KeyForm({ madeTitle, make, ...dialog }: KeyFormProps) {
  const [made, setMade] = useState<string | null>(null)
  const submit = async (form: FormData) => {
    const { data } = await make(form)
    setMade(data.key)
    refreshKeys()
  }
  if (made === null) return <FormDialog {...dialog} onSubmit={submit} />
  return (
    <Dialog title={madeTitle} onClose={dialog.onClose}>
      <p>Copy it now: it is not shown again.</p>
      <Secret text={made} of="the key" />
      <form method="dialog" class="row buttons">
        <button type="submit" class="primary">
          Done
        </button>
      </form>
    </Dialog>
  )
}

/** When a key expires, by the number of days. */
const lives: [string, string][] = [
  ['', 'never'],
  ...Object.entries({ 1: 'in 1 day', 7: 'in 7 days', 30: 'in 30 days', 90: 'in 90 days', 365: 'in 1 year' }),
]

/** A form for a key with scopes that the current key may grant. */
export function NewKey({ onClose }: { onClose(): void }) {
  const held = useScopes()
  const isGrantable = (scope: Scope) => held.includes(scope)
  const offered = (Object.keys(presets) as Preset[]).filter((name) => presets[name].scopes.every(isGrantable))
  const [purpose, setPurpose] = useState<Preset | 'scopes'>(offered[0] ?? 'scopes')
  const isBrowser = purpose === 'browser'
  return (
    <KeyForm
      title="New key"
      does="Create key"
      madeTitle="New key created"
      make={(form) => answerOf(api.POST('/api/v1/keys', { body: describeKey(purpose, form) }))}
      onClose={onClose}
    >
      <Input label="Name" name="name" maxLength={500} required />
      <Select
        label="For"
        hint={purpose === 'scopes' ? undefined : presets[purpose].says}
        value={purpose}
        options={[...offered.map((name): [string, string] => [name, name]), ['scopes', 'Custom']]}
        onChange={(value) => setPurpose(value as Preset | 'scopes')}
      />
      <fieldset hidden={purpose !== 'scopes'}>
        <legend>Permissions</legend>
        {allScopes.filter(isGrantable).map((scope) => (
          <label key={scope} class="row check">
            <input type="checkbox" name="scopes" value={scope} />
            {meanings[scope]} <code>{scope}</code>
          </label>
        ))}
      </fieldset>
      <fieldset hidden={!isBrowser} disabled={!isBrowser}>
        <Lines
          label="Origins"
          hint="One per line, such as https://example.com or https://*.example.com"
          name="origins"
          required
        />
        <Lines label="Prompts" hint="Prompt IDs, one per line. Leave empty for all." name="prompts" />
        <Input
          label="Signals per month"
          hint="Leave empty for the limit of the organisation."
          name="limit"
          type="number"
          min={0}
        />
      </fieldset>
      <Select label="Expires" name="life" options={lives} />
    </KeyForm>
  )
}

const dayMs = 86_400_000

/** Disabled fields are not in the form. */
function describeKey(purpose: Preset | 'scopes', form: FormData): Schemas['NewApiKey'] {
  const text = (name: string) => String(form.get(name) ?? '')
  const lines = (name: string) =>
    text(name)
      .split('\n')
      .map((line) => line.trim())
      .filter((line) => line !== '')
  const [life, prompts, limit] = [text('life'), lines('prompts'), text('limit')]
  return {
    name: text('name'),
    ...(purpose === 'scopes' ? { scopes: form.getAll('scopes') as Scope[] } : { preset: purpose }),
    expires_at: life === '' ? null : new Date(Date.now() + Number(life) * dayMs).toISOString(),
    ...(purpose === 'browser' && {
      origins: lines('origins'),
      prompts: prompts.length > 0 ? prompts : null,
      monthly_limit: limit === '' ? null : Number(limit),
    }),
  }
}

/** How long the old key stays valid, by the number of seconds. */
const overlaps = Object.entries({ 0: 'not at all', 3600: 'for 1 hour', 86400: 'for 1 day', 604800: 'for 1 week' })

type KeyProps = { apiKey: Schemas['ApiKey']; onClose(): void }

export function RotateKey({ apiKey: { id, name }, onClose }: KeyProps) {
  const [overlap, setOverlap] = useState('86400')
  const rotate = () =>
    answerOf(
      api.POST('/api/v1/keys/{key_id}/rotate', {
        params: { path: { key_id: id } },
        body: { overlap_seconds: Number(overlap) },
      }),
    )
  return (
    <KeyForm title="Rotate key" does="Rotate" madeTitle="Key rotated" make={rotate} onClose={onClose}>
      <p>
        Creates a key that replaces <Text>{name}</Text>, with the same permissions.
      </p>
      <Select label="Old key stays valid" value={overlap} options={overlaps} onChange={setOverlap} />
    </KeyForm>
  )
}

export function RevokeKey({ apiKey: { id, name }, isOwn, onClose }: KeyProps & { isOwn: boolean }) {
  const submit = async () => {
    await answerOf(api.DELETE('/api/v1/keys/{key_id}', { params: { path: { key_id: id } } }))
    refreshKeys()
    onClose()
  }
  return (
    <FormDialog title="Revoke key" does="Revoke" onSubmit={submit} onClose={onClose}>
      <p>
        “<Text>{name}</Text>” stops working within a second. This cannot be undone.
      </p>
      {isOwn && <p>You are signed in with this key.</p>}
    </FormDialog>
  )
}
