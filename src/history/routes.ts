import { Elysia } from 'elysia'
import type { Clock } from '../clock.ts'
import type { Db } from '../db/client.ts'
import { parseJson, readByHandler, readJsonText } from '../http/body.ts'
import { describeOperation } from '../http/describe.ts'
import type { RouteWrapper } from '../http/middleware.ts'
import { queryTextOf } from '../http/paging.ts'
import type { PromptFinder } from '../prompts/find.ts'
import { PromptPath } from '../prompts/schema.ts'
import { parseHistoryQuery } from './query.ts'
import type { HistoryReader } from './read.ts'
import { recordEntry } from './record.ts'
import { HistoryPage, NewHistoryEntry, RecordedEntry } from './schema.ts'
import { historyParams } from './schema_params.ts'

type Services = { db: Db; clock: Clock; findPrompt: PromptFinder['find']; historyReader: HistoryReader }
type PromptParams = { prompt_id: string }

const path = '/api/v1/prompts/:prompt_id/history'

const reading = describeOperation({
  id: 'getPromptHistory',
  tag: 'History',
  summary: 'Get the edit history of a prompt',
  description:
    'Returns who changed the prompt, when, and how the change was deployed, newest first. ' +
    'A page past the end is empty and has the true totals. With filters, the totals count the matching entries.',
  path: PromptPath,
  query: historyParams,
  success: { status: 200, description: 'One page of the history.', schema: HistoryPage, headers: ['Link', 'ETag'] },
  unchanged: true,
})

const recording = describeOperation({
  id: 'recordPromptHistory',
  tag: 'History',
  summary: 'Record a history entry',
  description:
    'Adds an entry at its place in time. The pr_* actions need a pull request; deployed must not have one. ' +
    'Repeating a request is safe: an existing entry with the same action, commit and pull request is returned unchanged.',
  path: PromptPath,
  body: NewHistoryEntry,
  success: {
    status: 201,
    description: 'The entry is in the history.',
    schema: RecordedEntry,
    sometimes: ['Idempotent-Replayed'],
  },
  invalid: {
    message: 'The history entry is not valid.',
    example: { details: [{ path: '/pr_number', message: 'must be given, with pr_url, when the action is pr_merged' }] },
  },
})

export const historyRoutes = ({ db, clock, findPrompt, historyReader }: Services, { authenticated }: RouteWrapper) =>
  new Elysia({ name: 'history' })
    .get(
      path,
      authenticated('history:read', async (context, params: PromptParams, { organisationId }) => {
        const { request } = context
        const found = await historyReader.findHistory(organisationId, params.prompt_id)
        const query = parseHistoryQuery(queryTextOf(request))
        if (matchesEtag(request.headers.get('if-none-match'), found.version)) {
          return context.reply(304, null, cachingHeaders(found.version))
        }
        const page = await historyReader.readPage(found, query)
        return context.reply(200, page.body, { ...cachingHeaders(page.version), link: page.links })
      }),
      { detail: reading },
    )
    .post(
      path,
      authenticated('history:write', async (context, params: PromptParams, { organisationId }) => {
        const prompt = await findPrompt(organisationId, params.prompt_id)
        const body = parseJson(await readJsonText(context))
        const { entry, isNew } = await recordEntry(db, clock, prompt, body, context.deadline)
        const headers: Record<string, string> = isNew ? {} : { 'idempotent-replayed': 'true' }
        return context.replyData(entry, 201, headers)
      }),
      { ...readByHandler, detail: recording },
    )

/** The version changes with every change of the history, so one ETag serves all pages of it. */
const etagOf = (version: string) => `"${version}"`

/** Only the client may cache the response, and it has to revalidate it each time. */
const cachingHeaders = (version: string) => ({
  etag: etagOf(version),
  'cache-control': 'private, no-cache',
  vary: 'Authorization',
})

function matchesEtag(ifNoneMatch: string | null, version: string): boolean {
  if (ifNoneMatch === null) return false
  const known = ifNoneMatch.split(',').map((etag) => etag.trim())
  return known.some((etag) => etag === '*' || etag.replace(/^W\//, '') === etagOf(version))
}
