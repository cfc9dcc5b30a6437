import { useState } from 'preact/hooks'
import { answerOf, api } from '../client/api.ts'
import { useSending } from '../client/form.ts'
import { refresh } from '../client/query.ts'
import { root } from '../client/router.ts'
import type { Schemas } from '../client/schemas.ts'
import { Button } from '../parts/button.tsx'
import { Secret } from '../parts/copy.tsx'
import { Page } from '../parts/page.tsx'
import { FailureNote } from '../parts/states.tsx'

/** The webhook that records history from GitHub. */
export function Webhooks() {
  const [webhook, setWebhook] = useState<Schemas['GithubWebhook']['data']>()
  const { isSending, failure, send } = useSending()
  const make = () =>
    send(async () => {
      const { data } = await answerOf(api.PUT('/api/v1/webhooks/github'))
      setWebhook(data)
      refresh('/api/v1/audit')
    })
  return (
    <Page title="GitHub webhook">
      <div class="prose">
        <p>
          A webhook records pushes and pull requests as history of the prompts that are linked to files of the
          repository.
        </p>
        {webhook ? (
          <ol>
            <li>
              On GitHub, open the settings of the repository or the organisation, then <strong>Webhooks</strong>, then{' '}
              <strong>Add webhook</strong>.
            </li>
            <li>
              Payload URL
              <Secret text={new URL(webhook.path.slice(1), root).href} of="the URL" />
            </li>
            <li>
              Secret. Copy it now: it is not shown again.
              <Secret text={webhook.secret} of="the secret" />
            </li>
            <li>
              Choose <strong>application/json</strong>, and the events <strong>Pushes</strong>,{' '}
              <strong>Pull requests</strong> and <strong>Repositories</strong>.
            </li>
          </ol>
        ) : (
          <>
            <p>A new secret replaces the current one immediately. Deliveries signed with the old one are rejected.</p>
            {failure && <FailureNote failure={failure} />}
            <Button look="primary" does="Generate secret" isDisabled={isSending} onClick={make} />
          </>
        )}
      </div>
    </Page>
  )
}
