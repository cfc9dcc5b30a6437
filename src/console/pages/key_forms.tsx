import { useState } from 'preact/hooks'
import { type Preset, presets } from '../../lib/scopes.ts'
import { answerOf, api, type Schemas } from '../client/api.ts'
import { useScopes } from '../client/organisation.ts'
import { change, onlyChanged, refreshAfterChange } from '../client/query.ts'
import { FormDialog } from '../parts/dialog.tsx'
import { Input, Select } from '../parts/field.tsx'
import { formatMoment } from '../parts/format.ts'
import { purposes } from '../parts/scopes.ts'
import { RotateForm, SecretForm } from '../parts/secret_form.tsx'
import { Text } from '../parts/text.tsx'
import {
  BrowserFields,
  lives,
  NewExpiry,
  readExpiry,
  readRestrictions,
  readScopes,
  ScopeFields,
} from './key_fields.tsx'

const keys = '/api/v1/keys'

/** A form for a key with scopes that the current key may grant. */
export function NewKey({ onClose }: { onClose(): void }) {
  const held = useScopes()
  const offered = (Object.keys(presets) as Preset[]).filter((name) =>
    presets[name].every((scope) => held.includes(scope)),
  )
  const [purpose, setPurpose] = useState<Preset | 'scopes'>(offered[0] ?? 'scopes')
  const make = async (form: FormData) => {
    const body = {
      name: form.get('name') as string,
      ...(purpose === 'scopes' ? { scopes: readScopes(form) } : { preset: purpose }),
      expires_at: readExpiry(form),
      ...(purpose === 'browser' && readRestrictions(form)),
    }
    return (await change(api.POST(keys, { body }), keys)).data.key
  }
  return (
    <SecretForm
      title="New key"
      does="Create key"
      madeTitle="New key created"
      of="the key"
      make={make}
      onClose={onClose}
    >
      <Input label="Name" name="name" maxLength={200} required />
      <Select
        label="For"
        hint={purpose === 'scopes' ? undefined : purposes[purpose]}
        value={purpose}
        options={[...offered.map((name): [string, string] => [name, name]), ['scopes', 'Custom']]}
        onChange={(value) => setPurpose(value as Preset | 'scopes')}
      />
      <ScopeFields isHidden={purpose !== 'scopes'} />
      {purpose === 'browser' && <BrowserFields origins={null} prompts={null} monthly_limit={null} />}
      <NewExpiry />
    </SecretForm>
  )
}

/** What may be changed: scopes only by those who hold all of them, and restrictions only of a browser key. */
export function EditKey({ apiKey, onClose }: KeyProps) {
  const { id, name, scopes, origins, expires_at: expiresAt } = apiKey
  const held = useScopes()
  const mayGrant = scopes.every((scope) => held.includes(scope))
  const submit = async (form: FormData) => {
    const given = {
      name: form.get('name') as string,
      ...(mayGrant && !origins && { scopes: readScopes(form) }),
      ...(form.get('expires_at') !== 'keep' && { expires_at: readExpiry(form) }),
      ...(mayGrant && origins && readRestrictions(form)),
    }
    const params = { path: { key_id: id } }
    const body = onlyChanged(given, apiKey)
    if (body) await change(api.PATCH('/api/v1/keys/{key_id}', { params, body }), keys)
  }
  return (
    <FormDialog title="Edit key" does="Save" onSubmit={submit} onClose={onClose}>
      <Input label="Name" name="name" maxLength={200} defaultValue={name} required />
      {mayGrant && (origins ? <BrowserFields {...apiKey} /> : <ScopeFields held={scopes} />)}
      <Select
        label="Expires"
        name="expires_at"
        options={[['keep', expiresAt ? `${formatMoment(expiresAt)}, as before` : 'never, as before'], ...lives]}
      />
    </FormDialog>
  )
}

type KeyProps = { apiKey: Schemas['ApiKey']; onClose(): void }

export function RotateKey({ apiKey: { id, name }, onClose }: KeyProps) {
  const params = { path: { key_id: id } }
  const rotate = async (body: { overlap_seconds: number }) =>
    (await answerOf(api.POST('/api/v1/keys/{key_id}/rotate', { params, body }))).data.key
  // Not while the new key is shown: if this session's key was rotated, the answer may be a 401, which hides the page.
  const close = () => {
    onClose()
    refreshAfterChange(keys)
  }
  return (
    <RotateForm noun="key" rotate={rotate} onClose={close}>
      <p>
        Creates a key that replaces <Text>{name}</Text>, with the same permissions.
      </p>
    </RotateForm>
  )
}

export function RevokeKey({ apiKey: { id, name }, isOwn, onClose }: KeyProps & { isOwn: boolean }) {
  const submit = () => change(api.DELETE('/api/v1/keys/{key_id}', { params: { path: { key_id: id } } }), keys)
  return (
    <FormDialog title="Revoke key" does="Revoke" onSubmit={submit} onClose={onClose}>
      <p>
        “<Text>{name}</Text>” stops working within a second. This cannot be undone.
      </p>
      {isOwn && <p>You are signed in with this key.</p>}
    </FormDialog>
  )
}
