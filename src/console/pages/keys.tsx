import { useState } from 'preact/hooks'
import { get } from '../client/api.ts'
import { useOwnKey } from '../client/organisation.ts'
import type { Schemas } from '../client/schemas.ts'
import { Button } from '../parts/button.tsx'
import { List } from '../parts/list.tsx'
import { Page } from '../parts/page.tsx'
import { presetOf } from '../parts/scopes.ts'
import { Note } from '../parts/states.tsx'
import { Code, Text, When } from '../parts/text.tsx'
import { EditKey, NewKey, RevokeKey, RotateKey } from './key_forms.tsx'

type Key = Schemas['ApiKey']
type Change = { kind: 'new' } | { kind: 'edit' | 'rotate' | 'revoke'; key: Key }

/** The keys of the organisation, and what may be done with them. */
export function Keys() {
  const own = useOwnKey()
  const mayChange = own?.scopes.includes('keys:write') ?? false
  const [change, setChange] = useState<Change>()
  const close = () => setChange(undefined)
  const newKey = <Button look="primary" does="New key" onClick={() => setChange({ kind: 'new' })} />
  return (
    <Page title="Keys" actions={mayChange && newKey}>
      <List
        caption="Keys"
        pageAt={(cursor) => get('/api/v1/keys', { query: { cursor } })}
        empty={() => <Note title="No more keys" />}
        keyOf={({ id }) => id}
        columns={[
          { name: 'Name', cell: (key) => <KeyName apiKey={key} isOwn={key.id === own?.id} /> },
          { name: 'Permissions', cell: ({ scopes }) => presetOf(scopes) ?? <Scopes scopes={scopes} /> },
          { name: 'Last used', cell: ({ last_used_at: time }) => (time ? <When time={time} /> : 'never') },
          { name: 'State', cell: (key) => <State apiKey={key} /> },
          mayChange && {
            name: 'Actions',
            isQuiet: true,
            cell: (key) =>
              isLive(key) && (
                <span class="row-actions">
                  <Button look="small" does="Edit" to={key.name} onClick={() => setChange({ kind: 'edit', key })} />
                  {!key.replaced_by && (
                    <Button
                      look="small"
                      does="Rotate"
                      to={key.name}
                      onClick={() => setChange({ kind: 'rotate', key })}
                    />
                  )}
                  <Button look="small" does="Revoke" to={key.name} onClick={() => setChange({ kind: 'revoke', key })} />
                </span>
              ),
          },
        ]}
      />
      {change?.kind === 'new' && <NewKey onClose={close} />}
      {change?.kind === 'edit' && <EditKey apiKey={change.key} onClose={close} />}
      {change?.kind === 'rotate' && <RotateKey apiKey={change.key} onClose={close} />}
      {change?.kind === 'revoke' && <RevokeKey apiKey={change.key} isOwn={change.key.id === own?.id} onClose={close} />}
    </Page>
  )
}

const KeyName = ({ apiKey: { name, prefix, origins }, isOwn }: { apiKey: Key; isOwn: boolean }) => (
  <>
    <Text>{name}</Text>
    {isOwn && <span class="tag">Current session</span>}
    <span class="detail">
      <Code>{`${prefix}…`}</Code>
      {origins && <Text>{` for ${origins.join(', ')}`}</Text>}
    </span>
  </>
)

const Scopes = ({ scopes }: { scopes: Key['scopes'] }) => (
  <span class="row scopes-inline">
    {scopes.map((scope) => (
      <code key={scope}>{scope}</code>
    ))}
  </span>
)

const isLive = ({ revoked_at, expires_at }: Key): boolean =>
  revoked_at === null && (expires_at === null || new Date(expires_at) > new Date())

function State({ apiKey }: { apiKey: Key }) {
  const { revoked_at, expires_at, replaced_by, monthly_limit } = apiKey
  if (!isLive(apiKey)) {
    return (
      <span class="muted">
        {revoked_at ? 'Revoked' : 'Expired'} <When time={(revoked_at ?? expires_at) as string} />
      </span>
    )
  }
  return (
    <>
      {expires_at ? (
        <>
          {replaced_by ? 'Replaced, ends' : 'Expires'} <When time={expires_at} />
        </>
      ) : (
        'Active'
      )}
      {monthly_limit !== null && <span class="detail">up to {monthly_limit} signals per month</span>}
    </>
  )
}
