import { get, type Schemas } from '../client/api.ts'
import { useScopes } from '../client/organisation.ts'
import { hrefWith, usePlace } from '../client/router.ts'
import { Button } from '../parts/button.tsx'
import { useDialog } from '../parts/dialog.tsx'
import { countOf } from '../parts/format.ts'
import { List } from '../parts/list.tsx'
import { Page } from '../parts/page.tsx'
import { Note } from '../parts/states.tsx'
import { actionsColumn } from '../parts/table.tsx'
import { Moment, Named, Text, When } from '../parts/text.tsx'
import { Deliveries } from './deliveries.tsx'
import { DisabledEndpoints, disabledReasons } from './disabled_endpoints.tsx'
import { EditEndpoint, kinds, NewEndpoint, RemoveEndpoint, RotateEndpoint, TestEndpoint } from './endpoint_forms.tsx'

type Endpoint = Schemas['WebhookEndpoint']

/** The endpoints of the organisation, or the deliveries of the one that the address names. */
export function Endpoints() {
  const id = usePlace().query.get('endpoint')
  return id === null ? <EndpointList /> : <Deliveries endpoint={id} />
}

function EndpointList() {
  const mayChange = useScopes().includes('webhooks:write')
  const { dialog, show } = useDialog()
  return (
    <Page
      title="Endpoints"
      actions={mayChange && <Button look="primary" does="New endpoint" onClick={() => show(NewEndpoint, {})} />}
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
          mayChange &&
            actionsColumn<Endpoint>(
              ({ url }) => url,
              (endpoint) => ({
                Edit: () => show(EditEndpoint, { endpoint }),
                Test: () => show(TestEndpoint, { endpoint }),
                ...(endpoint.kind === 'webhook' && { Rotate: () => show(RotateEndpoint, { endpoint }) }),
                Remove: () => show(RemoveEndpoint, { endpoint }),
              }),
            ),
        ]}
      />
      {dialog}
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
  <Named name={events?.join(', ') ?? 'all'} detail={prompts && `of ${countOf(prompts.length, 'prompt')}`} />
)

function State({ endpoint }: { endpoint: Endpoint }) {
  const { disabled_at, disabled_reason: reason, failing_since_at, old_secret_ends_at: oldEnds } = endpoint
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
      {failing_since_at ? 'Failing' : 'Enabled'}
      {failing_since_at && (
        <span class="detail">
          since <Moment time={failing_since_at} />
        </span>
      )}
      {oldEnds && new Date(oldEnds) > new Date() && (
        <span class="detail">
          Old secret ends <When time={oldEnds} />
        </span>
      )}
    </>
  )
}
