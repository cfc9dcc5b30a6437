import { get, type Schemas } from '../client/api.ts'
import { useScopes } from '../client/organisation.ts'
import { useQuery, useSending } from '../client/query.ts'
import { href } from '../client/router.ts'
import { Button } from '../parts/button.tsx'
import { countOf } from '../parts/format.ts'
import { FailureNote, Note } from '../parts/states.tsx'
import { Text } from '../parts/text.tsx'
import { changeEndpoint } from './endpoint_forms.tsx'

type Endpoint = Schemas['WebhookEndpoint']
type Reason = NonNullable<Endpoint['disabled_reason']>

export const disabledReasons: Record<Reason, string> = {
  requested: 'by a change',
  gone: 'the receiver answered 410 Gone',
  failing: 'every attempt failed for five days',
  restored: 'it comes from a backup',
}

/** Says which endpoints the service has disabled, until they are enabled or removed. */
export function DisabledEndpoints() {
  const scopes = useScopes()
  const mayRead = scopes.includes('webhooks:read')
  const { data } = useQuery(mayRead ? get('/api/v1/webhooks/endpoints', { query: {} }) : undefined)
  const { isSending, failure, send } = useSending()
  const disabled = (data?.data ?? []).filter(({ disabled_reason: reason }) => reason && reason !== 'requested')
  if (disabled.length === 0) return null
  return (
    <Note title={countOf(disabled.length, 'endpoint was disabled', 'endpoints were disabled')} role="alert">
      {disabled.map((endpoint) => (
        <p key={endpoint.id} class="row">
          <span>
            <a href={href('/settings/endpoints')}>
              <Text>{endpoint.url}</Text>
            </a>
            : {disabledReasons[endpoint.disabled_reason as Reason]}. It gets no events.
          </span>
          {scopes.includes('webhooks:write') && (
            <Button
              look="small"
              does="Enable"
              to={endpoint.url}
              isDisabled={isSending}
              onClick={() => send(() => changeEndpoint(endpoint, { enabled: true }))}
            />
          )}
        </p>
      ))}
      {failure && <FailureNote failure={failure} />}
    </Note>
  )
}
