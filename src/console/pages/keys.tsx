import { presetOf } from '../../lib/scopes.ts'
import { get, type Schemas } from '../client/api.ts'
import { useOwnKey } from '../client/organisation.ts'
import { Button } from '../parts/button.tsx'
import { useDialog } from '../parts/dialog.tsx'
import { countOf } from '../parts/format.ts'
import { List } from '../parts/list.tsx'
import { Page } from '../parts/page.tsx'
import { Note } from '../parts/states.tsx'
import { actionsColumn } from '../parts/table.tsx'
import { Code, Scopes, Text, When } from '../parts/text.tsx'
import { EditKey, NewKey, RevokeKey, RotateKey } from './key_forms.tsx'

type Key = Schemas['ApiKey']

/** The keys of the organisation, and what may be done with them. */
export function Keys() {
  const own = useOwnKey()
  const mayChange = own?.scopes.includes('keys:write') ?? false
  const { dialog, show } = useDialog()
  const newKey = <Button look="primary" does="New key" onClick={() => show(NewKey, {})} />
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
          mayChange &&
            actionsColumn<Key>(
              ({ name }) => name,
              (apiKey) =>
                isLive(apiKey)
                  ? {
                      Edit: () => show(EditKey, { apiKey }),
                      ...(!apiKey.replaced_by && { Rotate: () => show(RotateKey, { apiKey }) }),
                      Revoke: () => show(RevokeKey, { apiKey, isOwn: apiKey.id === own?.id }),
                    }
                  : {},
            ),
        ]}
      />
      {dialog}
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
  const words = replaced_by ? 'Replaced, ends' : 'Expires'
  return (
    <>
      {expires_at ? words : 'Active'} {expires_at && <When time={expires_at} />}
      {monthly_limit !== null && <span class="detail">up to {countOf(monthly_limit, 'signal')} per month</span>}
    </>
  )
}
