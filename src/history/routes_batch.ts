import { Elysia } from 'elysia'
import type { Clock } from '../clock.ts'
import type { Db } from '../db/client.ts'
import { parseJson, readByHandler, readJsonText } from '../http/body.ts'
import { describeOperation } from '../http/describe.ts'
import type { RouteWrapper } from '../http/middleware.ts'
import type { PromptFinder } from '../prompts/find.ts'
import { HistoryBatch, HistoryBatchResult } from './schema.ts'

type Services = { db: Db; clock: Clock; findPrompt: PromptFinder['find'] }

const recording = describeOperation({
  id: 'recordHistoryBatch',
  tag: 'History',
  summary: 'Record entries read from a repository',
  description:
    'Records what was read in a clone in the histories of several prompts, all or nothing. The command sync uses it. ' +
    'It is safe to repeat, and to use with the webhook: the same change becomes one entry, and each field comes from the ' +
    'source that knows it best.',
  body: HistoryBatch,
  success: { status: 200, description: 'The entries are recorded.', schema: HistoryBatchResult },
  errors: [404],
  invalid: {
    message: 'The batch is not valid.',
    example: {
      details: [{ path: '/entries/0/pr_number', message: 'must be given, with pr_url, when the action is pr_merged' }],
    },
  },
})

export const historyBatchRoutes = ({ db, clock, findPrompt }: Services, { authenticated }: RouteWrapper) =>
  new Elysia({ name: 'history batches' }).post(
    '/api/v1/history/batch',
    authenticated('history:write', async (context, _: object, { organisationId }) => {
      const body = parseJson(await readJsonText(context))
      const { recordHistoryBatch } = await import('./batch.ts')
      const find = (id: string) => findPrompt(organisationId, id)
      const outcomes = await recordHistoryBatch(db, clock, organisationId, body, find, context.deadline)
      return context.replyData({ outcomes })
    }),
    { ...readByHandler, detail: recording },
  )
