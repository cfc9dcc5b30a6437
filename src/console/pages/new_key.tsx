import { useState } from 'preact/hooks'
import { answerOf, api } from '../client/api.ts'
import { useSending } from '../client/form.ts'
import { useScopes } from '../client/own_key.ts'
import { refresh } from '../client/query.ts'
import type { Schemas, Scope } from '../client/schemas.ts'
import { Dialog } from '../parts/dialog.tsx'
import { Field, Input, Lines, NumberInput, Select } from '../parts/field.tsx'
import { scopes as allScopes, meanings, type Preset, presets } from '../parts/scopes.ts'
import { FailureNote } from '../parts/states.tsx'
import { DialogButtons, ShownOnce } from './key_changes.tsx'

type NewApiKey = Schemas['NewApiKey']

const dayMs = 86_400_000
const lives: [string, string][] = [
  ['', 'never'],
  ['1', 'in a day'],
  ['7', 'in a week'],
  ['30', 'in 30 days'],
  ['90', 'in 90 days'],
  ['365', 'in a year'],
]

/** A form for a key, of what the key at hand may grant. */
export function NewKey({ onClose }: { onClose(): void }) {
  const held = useScopes()
  const isGrantable = (scope: Scope) => held.includes(scope)
  const offered = (Object.keys(presets) as Preset[]).filter((name) => presets[name].scopes.every(isGrantable))
  const [name, setName] = useState('')
  const [purpose, setPurpose] = useState<Preset | 'scopes'>(offered[0] ?? 'scopes')
  const [scopes, setScopes] = useState<Scope[]>([])
  const [life, setLife] = useState('')
  const [origins, setOrigins] = useState('')
  const [prompts, setPrompts] = useState('')
  const [limit, setLimit] = useState('')
  const [made, setMade] = useState<string>()
  const { isSending, failure, send } = useSending()
  const isBrowser = purpose === 'browser'

  const describe = (): NewApiKey => ({
    name,
    ...(purpose === 'scopes' ? { scopes } : { preset: purpose }),
    expires_at: life === '' ? null : new Date(Date.now() + Number(life) * dayMs).toISOString(),
    ...(isBrowser ? { origins: linesOf(origins) } : {}),
    ...(isBrowser && linesOf(prompts).length > 0 ? { prompts: linesOf(prompts) } : {}),
    ...(isBrowser && limit !== '' ? { monthly_limit: Number(limit) } : {}),
  })
  const submit = (event: Event) => {
    event.preventDefault()
    send(async () => {
      const { data } = await answerOf(api.POST('/api/v1/keys', { body: describe() }))
      setMade(data.key ?? undefined)
      refresh('keys', 'audit')
    })
  }
  const toggle = (scope: Scope) =>
    setScopes(scopes.includes(scope) ? scopes.filter((one) => one !== scope) : [...scopes, scope])

  if (made !== undefined) return <ShownOnce title="The new key" text={made} onClose={onClose} />
  return (
    <Dialog title="New key" onClose={onClose}>
      <form onSubmit={submit}>
        <Field label="Name">{(tied) => <Input {...tied} value={name} isRequired onInput={setName} />}</Field>
        <Field label="For" hint={purpose === 'scopes' ? undefined : presets[purpose].says}>
          {(tied) => (
            <Select
              {...tied}
              value={purpose}
              options={[...offered.map((name): [string, string] => [name, name]), ['scopes', 'scopes that I choose']]}
              onChange={(value) => setPurpose(value as Preset | 'scopes')}
            />
          )}
        </Field>
        {purpose === 'scopes' && (
          <fieldset>
            <legend>It may</legend>
            {allScopes.filter(isGrantable).map((scope) => (
              <label key={scope} class="check">
                <input type="checkbox" checked={scopes.includes(scope)} onChange={() => toggle(scope)} />
                {meanings[scope]} <code>{scope}</code>
              </label>
            ))}
          </fieldset>
        )}
        {isBrowser && (
          <>
            <Field label="Origins" hint="One a line, as https://example.com or https://*.example.com">
              {(tied) => <Lines {...tied} value={origins} isRequired onInput={setOrigins} />}
            </Field>
            <Field label="Prompts" hint="Ids, one a line; empty for all">
              {(tied) => <Lines {...tied} value={prompts} onInput={setPrompts} />}
            </Field>
            <Field label="Signals a month" hint="Empty for as many as the organisation has">
              {(tied) => <NumberInput {...tied} value={limit} onInput={setLimit} />}
            </Field>
          </>
        )}
        <Field label="Expires">{(tied) => <Select {...tied} value={life} options={lives} onChange={setLife} />}</Field>
        {failure && <FailureNote failure={failure} />}
        <DialogButtons isSending={isSending} does="Make the key" onClose={onClose} />
      </form>
    </Dialog>
  )
}

const linesOf = (text: string): string[] =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
