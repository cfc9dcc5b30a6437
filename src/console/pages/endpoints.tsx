import { useState } from 'preact/hooks'
import { get } from '../client/api.ts'
import { useScopes } from '../client/organisation.ts'
import { hrefWith, usePlace } from '../client/router.ts'
import type { Schemas } from '../client/schemas.ts'
import { Button } from '../parts/button.tsx'
import { List } from '../parts/list.tsx'
import { Page } from '../parts/page.tsx'
import { Note } from '../parts/states.tsx'
import { Moment, Text, When } from '../parts/text.tsx'
import { Deliveries } from './deliveries.tsx'
import { DisabledEndpoints, disabledReasons } from './disabled_endpoints.tsx'
import { EditEndpoint, kinds, NewEndpoint, RemoveEndpoint, RotateEndpoint, TestEndpoint } from './endpoint_forms.tsx'

type Endpoint = Schemas['WebhookEndpoint']
type Change = { kind: 'new' } | { kind: 'edit' | 'test' | 'rotate' | 'remove'; endpoint: Endpoint }

/** The endpoints of the organisation, or the deliveries of the one that the address names. */
export function Endpoints() {
  const id = usePlace().query.get('endpoint')
  return id === null ? <EndpointList /> : <Deliveries endpoint={id} />
}

function EndpointList() {
  const mayChange = useScopes().includes('webhooks:write')
  const [change, setChange] = useState<Change>()
  const close = () => setChange(undefined)
  return (
    <Page
      title="Endpoints"
      actions={mayChange && <Button look="primary" does="New endpoint" onClick={() => setChange({ kind: 'new' })} />}
    >
      <DisabledEndpoints />
      <List
        caption="Endpoints"
        pageAt={(cursor) => get('/api/v1/webhooks/endpoints', { query: { cursor } })}
        empty={() => (
          <Note title="No endpoints yet">
            <p>
              An endpoint is told when a change goes live or its verdict is known: a webhook, or a channel in Slack.
            </p>
          </Note>
        )}
        keyOf={({ id }) => id}
        columns={[
          { name: 'URL', cell: (endpoint) => <Url endpoint={endpoint} /> },
          { name: 'Events', cell: (endpoint) => <Events endpoint={endpoint} /> },
          { name: 'State', cell: (endpoint) => <State endpoint={endpoint} /> },
          mayChange && {
            name: 'Actions',
            isQuiet: true,
            cell: (endpoint) => <Actions endpoint={endpoint} onChoose={(kind) => setChange({ kind, endpoint })} />,
          },
        ]}
      />
      {change?.kind === 'new' && <NewEndpoint onClose={close} />}
      {change?.kind === 'edit' && <EditEndpoint endpoint={change.endpoint} onClose={close} />}
      {change?.kind === 'test' && <TestEndpoint endpoint={change.endpoint} onClose={close} />}
      {change?.kind === 'rotate' && <RotateEndpoint endpoint={change.endpoint} onClose={close} />}
      {change?.kind === 'remove' && <RemoveEndpoint endpoint={change.endpoint} onClose={close} />}
    </Page>
  )
}

const Url = ({ endpoint: { id, url, kind } }: { endpoint: Endpoint }) => (
  <>
    <Text>{url}</Text>
    <span class="detail">
      {kinds[kind]} · <a href={hrefWith({ endpoint: id, cursor: undefined })}>Deliveries</a>
    </span>
  </>
)

const Events = ({ endpoint: { events, prompts } }: { endpoint: Endpoint }) => (
  <>
    {events?.join(', ') ?? 'all'}
    {prompts && <span class="detail">of {prompts.length === 1 ? '1 prompt' : `${prompts.length} prompts`}</span>}
  </>
)

function State({ endpoint }: { endpoint: Endpoint }) {
  const { disabled_at, disabled_reason: reason, failing_since, old_secret_ends_at: oldEnds } = endpoint
  if (disabled_at && reason) {
    return (
      <>
        Disabled <When time={disabled_at} />
        <span class="detail">{disabledReasons[reason]}</span>
      </>
    )
  }
  return (
    <>
      {failing_since ? (
        <>
          Failing
          <span class="detail">
            since <Moment time={failing_since} />
          </span>
        </>
      ) : (
        'Enabled'
      )}
      {oldEnds && new Date(oldEnds) > new Date() && (
        <span class="detail">
          Old secret ends <When time={oldEnds} />
        </span>
      )}
    </>
  )
}

type ActionsProps = { endpoint: Endpoint; onChoose(kind: 'edit' | 'test' | 'rotate' | 'remove'): void }

const Actions = ({ endpoint: { url, kind }, onChoose }: ActionsProps) => (
  <span class="row-actions">
    <Button look="small" does="Edit" to={url} onClick={() => onChoose('edit')} />
    <Button look="small" does="Test" to={url} onClick={() => onChoose('test')} />
    {kind === 'webhook' && <Button look="small" does="Rotate" to={url} onClick={() => onChoose('rotate')} />}
    <Button look="small" does="Remove" to={url} onClick={() => onChoose('remove')} />
  </span>
)
