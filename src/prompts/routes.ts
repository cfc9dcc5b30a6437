import { Elysia } from 'elysia'
import { keyHolder } from '../audit/record.ts'
import type { Clock } from '../clock.ts'
import type { Db, Sql } from '../db/client.ts'
import { invalid } from '../errors.ts'
import { parseJson, readByHandler, readJsonText } from '../http/body.ts'
import { describeOperations } from '../http/describe.ts'
import { readIdempotentRequest, replyCreated } from '../http/idempotency.ts'
import type { RouteWrapper } from '../http/middleware.ts'
import { describePage, pageRequestOf, replyPage, searchOf } from '../http/paging.ts'
import { QueryParser } from '../lib/query_parser.ts'
import { createValidator } from '../lib/validate.ts'
import { changeOnce } from '../requests/replay.ts'
import type { SignalReader } from '../signals/read.ts'
import type { PromptFinder } from './find.ts'
import { addPrompt, changePrompt, listPrompts, showPrompt } from './manage.ts'
import { parseSearch } from './query.ts'
import { NewPrompt, PromptChange, PromptList, PromptPath, PromptQuery, ShownPrompt } from './schema.ts'
import type { PromptFile } from './store.ts'

type Services = {
  db: Db
  clock: Clock
  findPrompt: PromptFinder['find']
  signalReader: Pick<SignalReader, 'limited'>
}
type PromptParams = { prompt_id: string }

const shown = { status: 200, description: 'The prompt.', schema: ShownPrompt }

const invalidPrompt = {
  message: 'The prompt is not valid.',
  example: { details: [{ path: '/name', message: 'must be given' }] },
}

const operations = describeOperations('Prompts', {
  listPrompts: {
    summary: 'List prompts',
    description: 'The prompts of the organisation, newest first.',
    ...describePage('A page of prompts.', PromptList),
    query: PromptQuery,
  },
  createPrompt: {
    summary: 'Make a prompt known',
    description:
      'Makes a prompt, with an ID of its own or the one given, linked to the file of a repository if repository and path ' +
      'are given.',
    isIdempotent: true,
    body: NewPrompt,
    success: { ...shown, status: 201, sometimes: ['Idempotent-Replayed'] },
    invalid: invalidPrompt,
  },
  getPrompt: {
    summary: 'Show a prompt',
    description: 'The name of a prompt, and the file that it is kept in.',
    path: PromptPath,
    success: shown,
  },
  changePrompt: {
    summary: 'Change a prompt',
    description:
      'Changes what is given of the name and the link, and leaves the rest. Repository and path belong together; both ' +
      'null unlink the prompt.',
    path: PromptPath,
    body: PromptChange,
    success: shown,
    invalid: invalidPrompt,
  },
})

const validateNew = createValidator(NewPrompt, 'The prompt')
const validateChange = createValidator(PromptChange, 'The change')

export const promptRoutes = ({ db, clock, findPrompt, signalReader }: Services, { authenticated }: RouteWrapper) =>
  new Elysia({ name: 'prompts' })
    .get(
      '/api/v1/prompts',
      authenticated('prompts:read', async (exchange, _: object, { organisationId }) => {
        const parser = new QueryParser(searchOf(exchange.request))
        const search = parseSearch(parser)
        parser.requireValid()
        const list = () => listPrompts(db, organisationId, pageRequestOf(exchange), search)
        // A search looks at every prompt of the organisation.
        return replyPage(exchange, await (search === null ? list() : signalReader.limited(organisationId, list)))
      }),
      { detail: operations.listPrompts },
    )
    .post(
      '/api/v1/prompts',
      authenticated('prompts:write', async (exchange, _: object, caller) => {
        const { organisationId } = caller
        const { body, request } = await readIdempotentRequest(exchange, organisationId, validateNew)
        const { name, id = null, ...link } = body
        const prompt = { name, id, file: parseLink(link) }
        const make = (sql: Sql) => addPrompt(sql, clock, organisationId, prompt, keyHolder(caller, exchange))
        return replyCreated(exchange, await changeOnce(db, clock, request, make))
      }),
      { ...readByHandler, detail: operations.createPrompt },
    )
    .get(
      '/api/v1/prompts/:prompt_id',
      authenticated('prompts:read', async (exchange, { prompt_id: id }: PromptParams, { organisationId }) => {
        const prompt = await showPrompt(db, await findPrompt(organisationId, id))
        return exchange.replyData(prompt)
      }),
      { detail: operations.getPrompt },
    )
    .patch(
      '/api/v1/prompts/:prompt_id',
      authenticated('prompts:write', async (exchange, { prompt_id: id }: PromptParams, caller) => {
        const prompt = await findPrompt(caller.organisationId, id)
        const { name, ...link } = validateChange(parseJson(await readJsonText(exchange)))
        const change = { name, file: parseLink(link) }
        return exchange.replyData(await changePrompt(db, clock, prompt, change, keyHolder(caller, exchange)))
      }),
      { ...readByHandler, detail: operations.changePrompt },
    )

type Link = { repository?: string | null; path?: string | null }

/** Undefined when no link is given, null for a prompt that is kept in no file. */
function parseLink({ repository, path }: Link): PromptFile | null | undefined {
  if (repository === undefined && path === undefined) return undefined
  if (repository === null && path === null) return null
  if (typeof repository === 'string' && typeof path === 'string') return { repository, path }
  const missing = typeof repository === 'string' ? '/path' : '/repository'
  throw invalid('The link is not valid.', [
    { path: missing, message: 'must be given: repository and path belong together' },
  ])
}
