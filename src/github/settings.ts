// The webhook of an organisation: its secret, its last event, and how long events are kept.
import { type Actor, permitRequestOf, recordAudit } from '../audit/record.ts'
import type { Clock } from '../clock.ts'
import type { Db } from '../db/client.ts'
import { pruneTable } from '../db/prune.ts'
import { randomBase62 } from '../lib/base62.ts'
import { dayMs } from '../lib/times.ts'
import type { Owner } from '../orgs/manage.ts'
import { pingResult, resultOf } from './schema.ts'
import { selectWebhookState, upsertWebhook } from './store_webhook.ts'

/** More than 256 bits of randomness. */
const secretLength = 43
/** GitHub sends an event again for three days at most. */
const eventsKeptMs = 7 * dayMs
/** How long pushes wait for a pull request from their branch, and closed pull requests to be reopened. */
const workKeptMs = 365 * dayMs

/** Creates the secret of an organisation's webhook. It replaces an earlier one and is not shown again. */
export async function setWebhook(db: Db, clock: Clock, { org, organisationId }: Owner, actor: Actor) {
  const secret = randomBase62(secretLength)
  await db.transaction(async (sql) => {
    await upsertWebhook(sql, organisationId, secret, clock.now())
    await recordAudit(sql, clock, actor, { organisationId, action: 'webhook.secret_set', subject: org })
  }, permitRequestOf(actor))
  return { org, path: pathOf(org), secret }
}

export async function showWebhook(db: Db, { org, organisationId }: Owner) {
  const state = await selectWebhookState(db.sql, organisationId)
  const { createdAt = null, at, event, outcome } = state ?? {}
  return {
    org,
    path: pathOf(org),
    secret_created_at: createdAt,
    last_event:
      at && event !== undefined && outcome
        ? {
            received_at: at,
            name: event,
            outcome,
            message: (event === 'ping' ? pingResult : resultOf(outcome)).message,
          }
        : null,
  }
}

const pathOf = (org: string): string => `/webhooks/github/${org}`

/** Deletes events, pushes and pull requests that are past their retention time. */
export async function pruneGithub(db: Db, now: Date): Promise<void> {
  const workKeptSince = new Date(now.getTime() - workKeptMs)
  await pruneTable(db, 'github_events', 'received_at', new Date(now.getTime() - eventsKeptMs))
  await pruneTable(db, 'github_affected_prompts', 'pushed_at', workKeptSince)
  // Pull requests are deleted after the pushes, because a merged pull request marks earlier pushes to its branch as merged.
  await pruneTable(db, 'github_pull_requests', 'closed_at', workKeptSince)
}
