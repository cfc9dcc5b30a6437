import { api, get, type Schemas } from '../client/api.ts'
import { useScopes } from '../client/organisation.ts'
import { change, useQuery, useSending } from '../client/query.ts'
import { hrefWith } from '../client/router.ts'
import { countOf } from '../parts/format.ts'
import { List } from '../parts/list.tsx'
import { Page } from '../parts/page.tsx'
import { FailureNote, Note } from '../parts/states.tsx'
import { actionsColumn } from '../parts/table.tsx'
import { Id, Moment, Named, Ours, Text, When } from '../parts/text.tsx'

type Delivery = Schemas['WebhookDelivery']

const listUrl = '/api/v1/webhooks/endpoints/{endpoint_id}/deliveries'

/** What an endpoint was sent in the last 14 days, newest first. */
export function Deliveries({ endpoint }: { endpoint: string }) {
  const path = { endpoint_id: endpoint }
  const shown = useQuery(get('/api/v1/webhooks/endpoints/{endpoint_id}', { path })).data?.data
  const mayChange = useScopes().includes('webhooks:write')
  const { isSending, failure, send } = useSending()
  const sendAgain = ({ id }: Delivery) => {
    const params = { path: { ...path, event_id: id } }
    return change(api.POST(`${listUrl}/{event_id}/redeliver`, { params }), listUrl)
  }
  return (
    <Page title="Deliveries">
      <p class="subtitle">
        {shown && <Ours>{`${shown.url} · `}</Ours>}
        <a href={hrefWith({ endpoint: undefined, cursor: undefined })}>All endpoints</a>
      </p>
      {failure && <FailureNote failure={failure} />}
      <List
        caption="Deliveries"
        pageAt={(cursor) => get(listUrl, { path, query: { cursor } })}
        empty={() => <Note title="Nothing was sent in the last 14 days" />}
        keyOf={({ id }) => id}
        columns={[
          { name: 'Event', cell: ({ id, type }) => <Named name={type} detail={<Id>{id}</Id>} /> },
          { name: 'When', cell: ({ created_at }) => <Moment time={created_at} /> },
          { name: 'Status', cell: (delivery) => <Status delivery={delivery} /> },
          { name: 'Last response', cell: (delivery) => <Response delivery={delivery} /> },
          mayChange &&
            actionsColumn<Delivery>(
              ({ id }) => id,
              (delivery) => ({ 'Send again': () => isSending || send(() => sendAgain(delivery)) }),
            ),
        ]}
      />
    </Page>
  )
}

const words: Record<Delivery['status'], string> = { delivered: 'Delivered', pending: 'Pending', failed: 'Failed' }

const Status = ({ delivery: { status, attempts, next_attempt_at: next } }: { delivery: Delivery }) => (
  <>
    {words[status]}
    <span class="detail">
      {countOf(attempts, 'attempt')}
      {next && (
        <>
          , next <When time={next} />
        </>
      )}
    </span>
  </>
)

const maxShown = 80

/** The begin of a response; the rest, which may be a page of HTML, is folded. */
function Response({ delivery: { response_code: code, response_text: text } }: { delivery: Delivery }) {
  if (code === null && text === null) return <span class="muted">none yet</span>
  if (text === null || text.length <= maxShown) return <Named name={code} detail={text && <Text>{text}</Text>} />
  return (
    <>
      {code}
      <details>
        <summary class="fine">
          <Text>{`${text.slice(0, maxShown)}…`}</Text>
        </summary>
        <Text>{text}</Text>
      </details>
    </>
  )
}
