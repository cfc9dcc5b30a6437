import { Elysia } from 'elysia'
import { keyHolder } from '../audit/record.ts'
import type { Services } from '../deps.ts'
import { parseJson, readJsonText } from '../http/body.ts'
import { describeOperations } from '../http/describe.ts'
import { readIdempotentRequest, replyCreated } from '../http/idempotency.ts'
import type { RouteWrapper } from '../http/middleware.ts'
import { visibleTo } from '../http/request_context.ts'
import type { Caller } from '../keys/caller.ts'
import { requireId } from '../lib/params.ts'
import { showPrompt } from '../prompts/find.ts'
import { PromptPath } from '../prompts/schema.ts'
import { recordEntry } from './record.ts'
import {
  alwaysInDiff,
  EntryDiff,
  EntryPath,
  HistoryBatch,
  HistoryBatchResult,
  type HistoryEntry,
  HistoryPage,
  NewHistoryEntry,
  RecordedEntry,
  RemovedEntry,
} from './schema.ts'
import { diffParams, type HistoryQuery, historyParams, parseHistoryQuery } from './schema_params.ts'

type EntryParams = PromptPath & { entry_id: string }

const path = '/api/v1/prompts/:prompt_id/history'

const needsPullRequest = 'must be given, with pr_url, when the action is pr_merged'

const operations = describeOperations('History', {
  getPromptHistory: {
    summary: 'Get the edit history of a prompt',
    description:
      'Returns who changed the prompt, when, and how the change was deployed, newest first. ' +
      'A page past the end is empty and has the true totals. With filters, the totals count the matching entries.',
    path: PromptPath,
    query: historyParams,
    success: { status: 200, description: 'One page of the history.', schema: HistoryPage, headers: ['Link', 'ETag'] },
    unchanged: true,
  },
  recordPromptHistory: {
    summary: 'Record a history entry',
    description:
      'Adds an entry at its place in time. The pr_* actions need a pull request; deployed must not have one. ' +
      'Repeating a request is safe: a known entry with the same action, branch, commit and pull request is returned, ' +
      'unless another commit went live on the branch between the two. With the same Idempotency-Key it always is.',
    path: PromptPath,
    isIdempotent: true,
    body: NewHistoryEntry,
    success: {
      status: 201,
      description: 'The entry is in the history.',
      schema: RecordedEntry,
    },
    invalid: {
      message: 'The history entry is not valid.',
      example: { details: [{ path: '/pr_number', message: needsPullRequest }] },
    },
  },
  removeHistoryEntry: {
    summary: 'Remove a history entry',
    description:
      'Removes an entry that is wrong. Impact changes immediately. Sync and the webhook do not bring back what they ' +
      'reported before; recording it again does.',
    path: EntryPath,
    success: { status: 200, description: 'The entry is removed.', schema: RemovedEntry },
  },
  getHistoryDiff: {
    summary: 'Show what a change did to the text',
    description:
      'Returns the text of the prompt after a change and before it, and the difference. Texts are known if the organisation ' +
      'stores them and a sync or a batch gave them.',
    path: EntryPath,
    query: diffParams,
    success: { status: 200, description: 'The texts and their difference.', schema: EntryDiff },
  },
  recordHistoryBatch: {
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
      example: { details: [{ path: '/entries/0/pr_number', message: needsPullRequest }] },
    },
  },
})

export const historyRoutes = ({ db, clock, findPrompt, historyReader }: Services, { authenticated }: RouteWrapper) =>
  new Elysia({ name: 'history' })
    .get(
      path,
      authenticated('history:read', async (context, params: PromptPath, { organisationId }) => {
        const { request } = context
        const found = await historyReader.findHistory(organisationId, params.prompt_id)
        const query = parseHistoryQuery(context.queryText)
        const etag = etagOf(found.version, query)
        if (matchesEtag(request.headers.get('if-none-match'), etag)) {
          return context.reply(304, null, cachingHeaders(etag))
        }
        const page = await historyReader.readPage(found, query)
        return context.reply(200, page.body, { ...cachingHeaders(etagOf(page.version, query)), link: page.links })
      }),
      { detail: operations.getPromptHistory },
    )
    .post(
      path,
      authenticated('history:write', async (context, params: PromptPath, caller) => {
        const prompt = await findPrompt(caller.organisationId, params.prompt_id)
        const { body, request } = await readIdempotentRequest(context, caller.organisationId, (given) => given)
        const { entry, isNew } = await recordEntry(db, clock, prompt, body, request)
        const answer = isNew ? entry : showRepeated(caller, entry, body as NewHistoryEntry)
        return replyCreated(context, { answer, isReplayed: !isNew })
      }),
      { detail: operations.recordPromptHistory },
    )
    .delete(
      `${path}/:entry_id`,
      authenticated('history:delete', async (context, { prompt_id, entry_id }: EntryParams, caller) => {
        const prompt = await findPrompt(caller.organisationId, prompt_id)
        const id = requireId(entry_id)
        const { removeEntry } = await import('./erase.ts')
        await removeEntry(db, clock, prompt, id, keyHolder(caller, context))
        return context.replyData({ id })
      }),
      { detail: operations.removeHistoryEntry },
    )
    .get(
      `${path}/:entry_id/diff`,
      authenticated('prompts:read', async (context, { prompt_id, entry_id }: EntryParams, caller) => {
        const prompt = await findPrompt(caller.organisationId, prompt_id)
        const id = requireId(entry_id)
        const { base } = diffParams.parse(context.searchParams)
        const { path: file } = await showPrompt(db, prompt)
        const { readDiff } = await import('./diff.ts')
        const read = () => readDiff(db.sql, prompt, file ?? prompt_id, id, base)
        const { entry, base: before, ...texts } = await db.heavyRead(caller.organisationId, read)
        const show = (row: object) => visibleTo(caller, 'history:read', row, alwaysInDiff)
        return context.replyData({ entry: show(entry), base: before && show(before), ...texts })
      }),
      { detail: operations.getHistoryDiff },
    )
    .post(
      '/api/v1/history/batch',
      authenticated('history:write', async (context, _: object, { organisationId }) => {
        const body = parseJson(await readJsonText(context))
        const { recordHistoryBatch } = await import('./batch.ts')
        const find = (id: string) => findPrompt(organisationId, id)
        return context.replyData(await recordHistoryBatch(db, clock, organisationId, body, find, context.deadline))
      }),
      { detail: operations.recordHistoryBatch },
    )

/** Shows a known entry. A caller that may not read the history gets only its id, and the fields that it sent. */
function showRepeated({ scopes }: Caller, entry: HistoryEntry, given: NewHistoryEntry): object {
  if (scopes.includes('history:read')) return entry
  const named = Object.entries(given).filter(([name]) => Object.hasOwn(NewHistoryEntry.properties, name))
  return { id: entry.id, ...Object.fromEntries(named) }
}

/** The version changes with every change of the history, so all pages with the same fields share one ETag. */
const etagOf = (version: string, { include }: HistoryQuery): string =>
  include === null ? `"${version}"` : `"${version}-${include}"`

/** Only the client may cache the response, and it has to revalidate it each time. */
const cachingHeaders = (etag: string) => ({
  etag,
  'cache-control': 'private, no-cache',
  vary: 'Authorization',
})

function matchesEtag(ifNoneMatch: string | null, etag: string): boolean {
  if (ifNoneMatch === null) return false
  const known = ifNoneMatch.split(',').map((one) => one.trim())
  return known.some((one) => one === '*' || one.replace(/^W\//, '') === etag)
}
