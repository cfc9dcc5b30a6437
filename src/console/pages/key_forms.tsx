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
  make(form: FormData): Promise<Schemas['CreatedApiKey']>
}

const refreshKeys = () => refresh('/api/v1/keys', '/api/v1/audit')

/** A form that makes a key, which is then shown this once. */
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
      <p>Keep it now: it is not shown again.</p>
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
  ...Object.entries({ 1: 'in a day', 7: 'in a week', 30: 'in 30 days', 90: 'in 90 days', 365: 'in a year' }),
]

/** A form for a key, of what the key at hand may grant. */
export function NewKey({ onClose }: { onClose(): void }) {
  const held = useScopes()
  const isGrantable = (scope: Scope) => held.includes(scope)
  const offered = (Object.keys(presets) as Preset[]).filter((name) => presets[name].scopes.every(isGrantable))
  const [purpose, setPurpose] = useState<Preset | 'scopes'>(offered[0] ?? 'scopes')
  const isBrowser = purpose === 'browser'
  return (
    <KeyForm
      title="New key"
      does="Make the key"
      madeTitle="The new key"
      make={(form) => answerOf(api.POST('/api/v1/keys', { body: describeKey(purpose, form) }))}
      onClose={onClose}
    >
      <Input label="Name" name="name" maxLength={500} required />
      <Select
        label="For"
        hint={purpose === 'scopes' ? undefined : presets[purpose].says}
        value={purpose}
        options={[...offered.map((name): [string, string] => [name, name]), ['scopes', 'scopes that I choose']]}
        onChange={(value) => setPurpose(value as Preset | 'scopes')}
      />
      <fieldset hidden={purpose !== 'scopes'}>
        <legend>It may</legend>
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
          hint="One a line, as https://example.com or https://*.example.com"
          name="origins"
          required
        />
        <Lines label="Prompts" hint="Ids, one a line; empty for all" name="prompts" />
        <Input
          label="Signals a month"
          hint="Empty for as many as the organisation has"
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

/** What is disabled is not in the form. */
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

/** How long the old key goes on, by the number of seconds. */
const overlaps = Object.entries({ 0: 'not at all', 3600: 'for an hour', 86400: 'for a day', 604800: 'for a week' })

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
    <KeyForm title="Rotate the key" does="Rotate" madeTitle="The key was rotated" make={rotate} onClose={onClose}>
      <p>
        Makes a key in the place of <Text>{name}</Text>, with the same rights.
      </p>
      <Select label="The old one works on" value={overlap} options={overlaps} onChange={setOverlap} />
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
    <FormDialog title="Revoke the key" does="Revoke" onSubmit={submit} onClose={onClose}>
      <p>
        <Text>{name}</Text> is rejected everywhere within a second, for good.
      </p>
      {isOwn && <p>It is the key that you are signed in with.</p>}
    </FormDialog>
  )
}
