import type { Clock } from '../clock.ts'
import type { Db } from '../db/client.ts'
import { defineOperations, operation } from '../http/operation.ts'
import { GithubWebhook, ShownGithubWebhook } from './schema.ts'
import { setWebhook, showWebhook } from './settings.ts'

type Needs = { db: Db; clock: Clock }

export const githubOperations = defineOperations('Webhooks', {
  getGithubWebhook: operation({
    method: 'GET',
    path: '/webhooks/github',
    scope: 'webhooks:write',
    summary: 'Show the GitHub webhook',
    description: 'Returns whether there is a secret, since when, and the last event with its outcome.',
    answer: { status: 200, description: 'The webhook, without its secret.', schema: ShownGithubWebhook },
    run: ({ db }: Needs, { caller }) => showWebhook(db, caller),
  }),
  setGithubWebhook: operation({
    method: 'PUT',
    path: '/webhooks/github',
    scope: 'webhooks:write',
    summary: 'Set the secret of the GitHub webhook',
    description:
      "Creates the secret of the organisation's webhook. It is shown only once and replaces an earlier one immediately. " +
      'If the response was lost, send the request again. `path` is where GitHub delivers to.',
    answer: { status: 200, description: 'The webhook, with its secret.', schema: GithubWebhook },
    run: ({ db, clock }: Needs, { caller, actor }) => setWebhook(db, clock, caller, actor),
  }),
})
