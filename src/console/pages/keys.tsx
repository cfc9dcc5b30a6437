import { useState } from 'preact/hooks'
import { answerOf, api } from '../client/api.ts'
import { useOwnKey } from '../client/own_key.ts'
import { useQuery } from '../client/query.ts'
import { usePlace } from '../client/router.ts'
import type { Schemas } from '../client/schemas.ts'
import { Page } from '../parts/page.tsx'
import { Pager } from '../parts/pager.tsx'
import { presetOf } from '../parts/scopes.ts'
import { Await, Empty } from '../parts/states.tsx'
import { Table } from '../parts/table.tsx'
import { Text, When } from '../parts/text.tsx'
import { RevokeKey, RotateKey } from './key_changes.tsx'
import { NewKey } from './new_key.tsx'

type Key = Schemas['ApiKey']
type Change = { kind: 'new' } | { kind: 'rotate' | 'revoke'; key: Key }

const asking = (cursor: string | undefined): [string, () => Promise<Schemas['ApiKeyList']>] => [
  `keys ${cursor ?? ''}`,
  () => answerOf(api.GET('/api/v1/keys', { params: { query: cursor ? { cursor } : {} } })),
]

/** The keys of the organisation, and what may be done with them. */
export function Keys() {
  const cursor = usePlace().query.get('cursor') ?? undefined
  const query = useQuery(...asking(cursor))
  const own = useOwnKey().data?.data
  const mayChange = own?.scopes.includes('keys:write') ?? false
  const [change, setChange] = useState<Change>()
  const close = () => setChange(undefined)
  const open = (kind: 'rotate' | 'revoke', key: Key) => () => setChange({ kind, key })
  const newKey = (
    <button type="button" class="primary" onClick={() => setChange({ kind: 'new' })}>
      New key
    </button>
  )
  return (
    <Page title="Keys" actions={mayChange && newKey}>
      <Await query={query}>
        {({ data, pagination }) => (
          <>
            {data.length === 0 && <Empty title="There are no more keys" />}
            <Table
              caption="Keys"
              rows={data}
              keyOf={({ id }) => id}
              columns={[
                { name: 'Name', cell: (key) => <KeyName apiKey={key} isOwn={key.id === own?.id} /> },
                { name: 'May', cell: ({ scopes }) => presetOf(scopes) ?? <Scopes scopes={scopes} /> },
                { name: 'Last used', cell: ({ last_used_at: time }) => (time ? <When time={time} /> : 'never') },
                { name: 'State', cell: (key) => <State apiKey={key} /> },
                ...(mayChange
                  ? [
                      {
                        name: 'Actions',
                        isQuiet: true,
                        cell: (key: Key) =>
                          isLive(key) && (
                            <span class="row-actions">
                              {!key.replaced_by && (
                                <button type="button" class="small" onClick={open('rotate', key)}>
                                  Rotate<span class="visually-hidden"> {key.name}</span>
                                </button>
                              )}
                              <button type="button" class="small" onClick={open('revoke', key)}>
                                Revoke<span class="visually-hidden"> {key.name}</span>
                              </button>
                            </span>
                          ),
                      },
                    ]
                  : []),
              ]}
            />
            <Pager isFirst={cursor === undefined} next={pagination.next_cursor} ask={asking} />
          </>
        )}
      </Await>
      {change?.kind === 'new' && <NewKey onClose={close} />}
      {change?.kind === 'rotate' && <RotateKey apiKey={change.key} onClose={close} />}
      {change?.kind === 'revoke' && <RevokeKey apiKey={change.key} isOwn={change.key.id === own?.id} onClose={close} />}
    </Page>
  )
}

const KeyName = ({ apiKey: { name, prefix, origins }, isOwn }: { apiKey: Key; isOwn: boolean }) => (
  <>
    <Text>{name}</Text>
    {isOwn && <span class="tag">this one</span>}
    <span class="detail">
      <code class="text">{prefix}…</code>
      {origins && <Text>{` for ${origins.join(', ')}`}</Text>}
    </span>
  </>
)

const Scopes = ({ scopes }: { scopes: Key['scopes'] }) => (
  <span class="scopes-inline">
    {scopes.map((scope) => (
      <code key={scope}>{scope}</code>
    ))}
  </span>
)

const isLive = ({ revoked_at, expires_at }: Key): boolean =>
  revoked_at === null && (expires_at === null || new Date(expires_at) > new Date())

function State({ apiKey: { revoked_at, expires_at, replaced_by, monthly_limit } }: { apiKey: Key }) {
  const isPast = expires_at !== null && new Date(expires_at) <= new Date()
  if (revoked_at) {
    return (
      <span class="muted">
        revoked <When time={revoked_at} />
      </span>
    )
  }
  if (isPast) {
    return (
      <span class="muted">
        expired <When time={expires_at} />
      </span>
    )
  }
  return (
    <>
      {expires_at ? (
        <>
          {replaced_by ? 'replaced, ends' : 'expires'} <When time={expires_at} />
        </>
      ) : (
        'works'
      )}
      {monthly_limit !== null && <span class="detail">at most {monthly_limit} signals a month</span>}
    </>
  )
}
