import { scopes as allScopes, type Scope } from '../../lib/scopes.ts'
import type { Schemas } from '../client/api.ts'
import { useOwnKey, usePrompts, useScopes } from '../client/organisation.ts'
import { Checks, Input, Lines, Select } from '../parts/field.tsx'
import { meanings } from '../parts/scopes.ts'

type Restrictions = Pick<Schemas['ApiKey'], 'origins' | 'prompts' | 'monthly_limit'>

const textOf = (form: FormData, name: string): string => String(form.get(name) ?? '').trim()

/** When a key expires, by the number of days. */
export const lives: [string, string][] = [
  ['', 'never'],
  ...Object.entries({ 1: 'in 1 day', 7: 'in 7 days', 30: 'in 30 days', 90: 'in 90 days', 365: 'in 1 year' }),
]

const dayMs = 86_400_000

const expiryAfter = (days: string): string => new Date(Date.now() + Number(days) * dayMs).toISOString()

/** When a new key expires: not later than the current key, which creates it. */
export function NewExpiry() {
  const end = useOwnKey()?.expires_at
  if (!end) return <Select label="Expires" name="expires_at" options={lives} />
  const shorter = lives.filter(([days]) => days !== '' && expiryAfter(days) < end)
  return (
    <Select
      label="Expires"
      hint="For a longer life, run prompt-signals keys create."
      name="expires_at"
      options={[[end, 'when this session ends'], ...shorter]}
    />
  )
}

export function readExpiry(form: FormData): string | null {
  const life = textOf(form, 'expires_at')
  if (life === '') return null
  return lives.some(([days]) => days === life) ? expiryAfter(life) : life
}

/** The scopes that the current key may grant. */
export function ScopeFields({ held = [], isHidden = false }: { held?: Scope[]; isHidden?: boolean }) {
  const grantable = useScopes()
  const offered = allScopes.filter((scope) => grantable.includes(scope))
  return (
    <Checks
      legend="Permissions"
      name="scopes"
      options={offered.map((scope) => [scope, meanings[scope], scope])}
      chosen={held}
      isHidden={isHidden}
    />
  )
}

export const readScopes = (form: FormData) => form.getAll('scopes') as Scope[]

/** What a browser key is restricted to. */
export const BrowserFields = ({ origins, prompts, monthly_limit: limit }: Restrictions) => (
  <>
    <Lines
      label="Origins"
      hint="One per line, such as https://example.com or https://*.example.com"
      name="origins"
      defaultValue={origins?.join('\n') ?? ''}
      required
    />
    <PromptFields chosen={prompts ?? []} />
    <Input
      label="Signals per month"
      hint="Leave empty for the limit of the organisation."
      name="monthly_limit"
      type="number"
      min={0}
      defaultValue={limit ?? ''}
    />
  </>
)

/** The prompts to choose from. Ids are typed only for prompts that are not listed. */
export function PromptFields({ chosen }: { chosen: string[] }) {
  const { data } = usePrompts()
  const listed = data?.data ?? []
  const others = chosen.filter((id) => !listed.some((prompt) => prompt.id === id))
  const isIncomplete = !data || data.pagination.next_cursor || others.length > 0
  return (
    <>
      {listed.length > 0 && (
        <Checks
          legend="Prompts"
          hint="Choose none for all."
          name="prompts"
          options={listed.map(({ id, name, repository }) => [id, name, repository])}
          chosen={chosen}
          isLong
        />
      )}
      {isIncomplete && (
        <Lines
          label={listed.length > 0 ? 'Other prompts' : 'Prompts'}
          hint="Prompt IDs, one per line."
          name="prompts"
          defaultValue={others.join('\n')}
        />
      )}
    </>
  )
}

const linesOf = (form: FormData, name: string): string[] =>
  form
    .getAll(name)
    .flatMap((text) => String(text).split('\n'))
    .map((line) => line.trim())
    .filter((line) => line !== '')

/** Null for all prompts. */
export function readPrompts(form: FormData): string[] | null {
  const prompts = linesOf(form, 'prompts')
  return prompts.length > 0 ? prompts : null
}

export function readRestrictions(form: FormData): Restrictions {
  const limit = textOf(form, 'monthly_limit')
  return {
    origins: linesOf(form, 'origins'),
    prompts: readPrompts(form),
    monthly_limit: limit === '' ? null : Number(limit),
  }
}
