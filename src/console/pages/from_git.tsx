import { useState } from 'preact/hooks'
import { hostKindOf, splitRepository } from '../../lib/repository_links.ts'
import { api, get, type Schemas } from '../client/api.ts'
import { useScopes } from '../client/organisation.ts'
import { change, useQuery, useSending } from '../client/query.ts'
import { href, root } from '../client/router.ts'
import { Button } from '../parts/button.tsx'
import { Secret } from '../parts/copy.tsx'
import { FormDialog } from '../parts/dialog.tsx'
import { Page } from '../parts/page.tsx'
import { Await, FailureNote } from '../parts/states.tsx'
import { Text, When } from '../parts/text.tsx'
import { Step } from './next_step.tsx'

type Webhook = Schemas['ShownGithubWebhook']['data']
type NewSecret = Schemas['GithubWebhook']['data']

/** How histories come from git: sync for every host, or the webhook of GitHub. */
export const FromGit = () => (
  <Page title="From git">
    <Sync />
    <GithubWebhook />
  </Page>
)

const recipes = { github: 'GitHub Actions', gitlab: 'GitLab CI', gitea: 'Gitea and Forgejo Actions', bitbucket: null }

/** With the recipe of the host of the most prompts. */
function Sync() {
  const query = useQuery(useScopes().includes('prompts:read') ? get('/api/v1/repositories', {}) : undefined)
  const [linked] = query.data?.data ?? []
  const kind = linked ? hostKindOf(splitRepository(linked.repository).host) : null
  const recipe = kind && recipes[kind]
  const command = `PROMPT_SIGNALS_KEY=psk_… prompt-signals sync --url ${urlOf('/').replace(/\/$/, '')}`
  return (
    <section>
      <h2>Sync after every push</h2>
      <Step title="In a clone of the repository, for any host" command={command} of="the sync command">
        <p>
          Records new changes of every linked file. The key is for <strong>ci</strong> (
          <a href={href('/settings/keys')}>keys</a>
          ).{' '}
          {recipe && <a href={href(`/guides/git#${recipe.toLowerCase().replaceAll(' ', '-')}`)}>Recipe for {recipe}</a>}
          {recipe && ', or '}
          <a href={href('/guides/git#in-a-pipeline')}>{recipe ? 'another' : 'Recipes'}</a> for any pipeline or server.
        </p>
      </Step>
    </section>
  )
}

/** The webhook that records history from GitHub. */
function GithubWebhook() {
  const query = useQuery(get('/api/v1/webhooks/github', {}))
  const [made, setMade] = useState<NewSecret>()
  const [isAsking, setAsking] = useState(false)
  const { isSending, failure, send } = useSending()
  const make = async () => {
    const { data } = await change(api.PUT('/api/v1/webhooks/github'), '/api/v1/webhooks')
    setMade(data)
  }
  return (
    <section>
      <h2>GitHub webhook</h2>
      <div class="prose">
        <p>
          Only for GitHub: records pushes and pull requests as history of the prompts that are linked to files of the
          repository, without a pipeline.
        </p>
        {made ? (
          <Instructions webhook={made} />
        ) : (
          <Await query={query}>
            {({ data }) => (
              <>
                <State webhook={data} />
                {failure && <FailureNote failure={failure} />}
                {data.secret_created_at ? (
                  <Button does="Replace secret" onClick={() => setAsking(true)} />
                ) : (
                  <Button look="primary" does="Generate secret" isDisabled={isSending} onClick={() => send(make)} />
                )}
              </>
            )}
          </Await>
        )}
      </div>
      {isAsking && (
        <FormDialog title="Replace secret" does="Replace" onSubmit={make} onClose={() => setAsking(false)}>
          <p>
            A new secret replaces the current one immediately. GitHub’s events are rejected until you enter the new one
            there.
          </p>
        </FormDialog>
      )}
    </section>
  )
}

const urlOf = (path: string): string => new URL(path.slice(1), root).href

/** Whether there is a secret, since when, and whether GitHub uses it. */
const State = ({ webhook: { path, secret_created_at: since, last_event: last } }: { webhook: Webhook }) => (
  <dl>
    <dt>Payload URL</dt>
    <dd>
      <code>{urlOf(path)}</code>
    </dd>
    <dt>Secret</dt>
    <dd>
      {since ? (
        <>
          generated <When time={since} />
        </>
      ) : (
        'none yet'
      )}
    </dd>
    {since && (
      <>
        <dt>Last event</dt>
        <dd>
          {last ? (
            <>
              <Text>{last.name}</Text>, <When time={last.received_at} />
              <span class="detail">{last.message}</span>
            </>
          ) : (
            'none with this secret yet'
          )}
        </dd>
      </>
    )}
  </dl>
)

const Instructions = ({ webhook: { path, secret } }: { webhook: NewSecret }) => (
  <ol>
    <li>
      On GitHub, open the settings of the repository or the organisation, then <strong>Webhooks</strong>, then{' '}
      <strong>Add webhook</strong>.
    </li>
    <li>
      Payload URL
      <Secret text={urlOf(path)} of="the URL" />
    </li>
    <li>
      Secret. Copy it now: it is not shown again.
      <Secret text={secret} of="the secret" />
    </li>
    <li>
      Choose <strong>application/json</strong>, and the events <strong>Pushes</strong>, <strong>Pull requests</strong>{' '}
      and <strong>Repositories</strong>.
    </li>
  </ol>
)
