import { Elysia } from 'elysia'
import type { Clock } from '../clock.ts'
import type { Db } from '../db/client.ts'
import { authenticated } from '../http/auth.ts'
import { readJson } from '../http/body.ts'
import { describeOperation } from '../http/describe.ts'
import type { KeyVerifier } from '../keys/verify.ts'
import type { PromptFinder } from '../prompts/find.ts'
import type { HistoryReader } from './list.ts'
import { pagingLinks, readQuery } from './query.ts'
import { recordEntry } from './record.ts'
import { HistoryPage, HistoryQuery, NewHistoryEntry, RecordedEntry } from './schema.ts'

type Services = { db: Db; clock: Clock; verifyKey: KeyVerifier; findPrompt: PromptFinder; history: HistoryReader }

const path = '/api/v1/prompts/:prompt_id/history'

const reading = describeOperation({
  id: 'getPromptHistory',
  tag: 'History',
  summary: 'Get the edit history of a prompt',
  description:
    'Lists who changed the prompt, when, and how the change was deployed: newest first, a page at a time. ' +
    'A page past the end is empty and has the true totals; with filters the totals are those of what matches.',
  query: HistoryQuery,
  success: { status: 200, description: 'One page of the history.', schema: HistoryPage, headers: ['Link', 'ETag'] },
  errors: [401, 404, 500],
  unchanged: true,
})

const recording = describeOperation({
  id: 'recordPromptHistory',
  tag: 'History',
  summary: 'Record a history entry',
  description:
    'Adds an entry, which takes its place by time. A pull request is given for the pr_* actions, and only for them. ' +
    'Safe to repeat: an entry of the same action, commit and pull request is answered as it stands.',
  body: NewHistoryEntry,
  success: {
    status: 201,
    description: 'The entry is in the history.',
    schema: RecordedEntry,
    headers: [],
    sometimes: ['Idempotent-Replayed'],
  },
  errors: [401, 404, 422, 500],
})

export const historyRoutes = ({ db, clock, verifyKey, findPrompt, history }: Services) =>
  new Elysia({ name: 'history' })
    .use(authenticated(verifyKey))
    .get(
      path,
      async ({ caller, inTime, params, request, set }) => {
        const version = await inTime(history.findVersion(caller.organisationId, params.prompt_id))
        set.headers.etag = etagOf(version)
        if (hasEtag(request, version)) {
          set.status = 304
          return
        }
        const url = new URL(request.url)
        const query = readQuery(url.searchParams)
        const page = await inTime(history.readPage(params.prompt_id, version, query))
        set.headers.etag = etagOf(page.version)
        set.headers.link = pagingLinks(`/api/v1/prompts/${params.prompt_id}/history`, query, page.totalPages)
        set.headers['content-type'] = 'application/json'
        return page.body
      },
      { detail: reading },
    )
    .post(
      path,
      async ({ caller, inTime, params, request, set }) => {
        const prompt = await inTime(findPrompt(caller.organisationId, params.prompt_id))
        const { value } = await readJson(request)
        const { entry, isNew } = await inTime(recordEntry(db, clock, prompt.id, value))
        set.status = 201
        if (!isNew) set.headers['idempotent-replayed'] = 'true'
        return { data: entry }
      },
      // The body is read by the handler, after the key and the prompt were checked.
      { parse: 'none', detail: recording },
    )

/** Of one address only the version can change what is answered. */
const etagOf = (version: number) => `"${version}"`

function hasEtag(request: Request, version: number): boolean {
  const known = request.headers.get('if-none-match')?.split(',') ?? []
  return known.some((etag) => etag.trim() === '*' || etag.trim().replace(/^W\//, '') === etagOf(version))
}
