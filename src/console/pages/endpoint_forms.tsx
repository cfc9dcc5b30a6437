import { useState } from 'preact/hooks'
import { answerOf, api, type Schemas } from '../client/api.ts'
import { change, onlyChanged } from '../client/query.ts'
import { FormDialog } from '../parts/dialog.tsx'
import { Checks, Input, Select } from '../parts/field.tsx'
import { RotateForm, SecretForm } from '../parts/secret_form.tsx'
import { Note } from '../parts/states.tsx'
import { Text } from '../parts/text.tsx'
import { PromptFields, readPrompts } from './key_fields.tsx'

type Endpoint = Schemas['WebhookEndpoint']
type Kind = Endpoint['kind']
type EventType = NonNullable<Endpoint['events']>[number]
type EndpointProps = { endpoint: Endpoint; onClose(): void }

const endpoints = '/api/v1/webhooks/endpoints'

const pathOf = ({ id }: Pick<Endpoint, 'id'>) => ({ params: { path: { endpoint_id: id } } })

export const kinds: Record<Kind, string> = { webhook: 'Webhook', slack: 'Slack, Mattermost or Rocket.Chat' }

const hints: Record<Kind, string> = {
  webhook: 'Gets signed JSON, such as https://example.com/webhooks',
  slack: 'The URL of an incoming webhook, such as https://hooks.slack.com/services/…',
}

/** When each event is sent. */
const events: Record<EventType, string> = {
  'change.live': 'a change went live',
  'impact.decided': 'a verdict on a change is known',
  'rate.changed': 'a rate changed, but not in git',
  'usage.threshold': '80 % or all of the month is used',
}

function Choices({ chosen }: { chosen: Pick<Endpoint, 'events' | 'prompts'> }) {
  return (
    <>
      <Checks
        legend="Events"
        hint="Choose none for all."
        name="event"
        options={Object.entries(events).map(([type, meaning]) => [type, meaning, type])}
        chosen={chosen.events ?? []}
      />
      <PromptFields chosen={chosen.prompts ?? []} />
    </>
  )
}

function readChoices(form: FormData): Pick<Endpoint, 'events' | 'prompts'> {
  const chosen = form.getAll('event') as EventType[]
  return { events: chosen.length > 0 ? chosen : null, prompts: readPrompts(form) }
}

export function NewEndpoint({ onClose }: { onClose(): void }) {
  const [kind, setKind] = useState<Kind>('webhook')
  const make = async (form: FormData) => {
    const body = { kind, url: String(form.get('url')).trim(), ...readChoices(form) }
    const { data } = await change(api.POST(endpoints, { body }), endpoints)
    // Messages to a chat are not signed.
    return kind === 'slack' ? null : data.secret
  }
  return (
    <SecretForm
      title="New endpoint"
      does="Create endpoint"
      madeTitle="New endpoint created"
      of="the secret"
      make={make}
      onClose={onClose}
    >
      <Select
        label="Kind"
        name="kind"
        value={kind}
        options={Object.entries(kinds)}
        onChange={(value) => setKind(value as Kind)}
      />
      <Input label="URL" hint={hints[kind]} name="url" type="url" maxLength={2_000} required />
      <Choices chosen={{ events: null, prompts: null }} />
    </SecretForm>
  )
}

export function EditEndpoint({ endpoint, onClose }: EndpointProps) {
  const submit = async (form: FormData) => {
    const given = { ...readChoices(form), enabled: form.has('enabled'), url: String(form.get('url')).trim() }
    const body = onlyChanged(given, { ...endpoint, url: '' })
    if (body) await changeEndpoint(endpoint, body)
  }
  return (
    <FormDialog title="Edit endpoint" does="Save" onSubmit={submit} onClose={onClose}>
      <Input label="URL" hint={`Leave empty to keep ${endpoint.url}`} name="url" type="url" maxLength={2_000} />
      <Choices chosen={endpoint} />
      <label class="row check">
        <input type="checkbox" name="enabled" defaultChecked={endpoint.enabled} /> Enabled: events are sent
      </label>
    </FormDialog>
  )
}

export const changeEndpoint = (endpoint: Endpoint, body: Schemas['WebhookEndpointChange']) =>
  change(api.PATCH('/api/v1/webhooks/endpoints/{endpoint_id}', { ...pathOf(endpoint), body }), endpoints)

export function RotateEndpoint({ endpoint, onClose }: EndpointProps) {
  const rotate = async (body: { overlap_seconds: number }) => {
    const asked = api.POST('/api/v1/webhooks/endpoints/{endpoint_id}/rotate', { ...pathOf(endpoint), body })
    return (await change(asked, endpoints)).data.secret
  }
  return (
    <RotateForm noun="secret" rotate={rotate} onClose={onClose}>
      <p>
        Generates a secret for <Text>{endpoint.url}</Text>. While the old one is valid, both sign every event.
      </p>
    </RotateForm>
  )
}

export function RemoveEndpoint({ endpoint, onClose }: EndpointProps) {
  const submit = () => change(api.DELETE('/api/v1/webhooks/endpoints/{endpoint_id}', pathOf(endpoint)), endpoints)
  return (
    <FormDialog title="Remove endpoint" does="Remove" onSubmit={submit} onClose={onClose}>
      <p>
        <Text>{endpoint.url}</Text> gets no more events, also none that are pending. This cannot be undone.
      </p>
    </FormDialog>
  )
}

/** Sends a ping and shows what the receiver answered. */
export function TestEndpoint({ endpoint, onClose }: EndpointProps) {
  const [outcome, setOutcome] = useState<Schemas['WebhookEndpointTest']['data']>()
  const submit = async () => {
    setOutcome(undefined)
    const { data } = await answerOf(api.POST('/api/v1/webhooks/endpoints/{endpoint_id}/test', pathOf(endpoint)))
    setOutcome(data)
  }
  return (
    <FormDialog title="Test endpoint" does="Send ping" staysOpen onSubmit={submit} onClose={onClose}>
      <p>
        Sends a ping to <Text>{endpoint.url}</Text> and shows the response.
      </p>
      <div role="status">
        {outcome && (
          <Note
            title={`${outcome.delivered ? 'Delivered' : 'Not delivered'}${outcome.response_code ? `: ${outcome.response_code}` : ''}`}
          >
            {outcome.response_text && (
              <p>
                <Text>{outcome.response_text}</Text>
              </p>
            )}
          </Note>
        )}
      </div>
    </FormDialog>
  )
}
