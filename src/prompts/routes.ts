import { Elysia } from 'elysia'
import { keyHolder } from '../audit/record.ts'
import type { Sql } from '../db/client.ts'
import type { Services } from '../deps.ts'
import { invalid } from '../errors.ts'
import { parseJson, readJsonText } from '../http/body.ts'
import { describeOperations } from '../http/describe.ts'
import { readIdempotentRequest, replyCreated } from '../http/idempotency.ts'
import type { RouteWrapper } from '../http/middleware.ts'
import { describePage, replyPage } from '../http/paging.ts'
import { visibleTo } from '../http/request_context.ts'
import { changeOnce } from '../idempotency/replay.ts'
import { createChangeValidator, createValidator } from '../lib/validate.ts'
import { listPrompts, showPrompt } from './find.ts'
import { changePrompt, createPromptInTransaction } from './manage.ts'
import { ChangedPrompt, NewPrompt, PromptChange, PromptList, PromptPath, promptParams, ShownPrompt } from './schema.ts'
import type { PromptFile } from './store.ts'

const shown = { status: 200, description: 'The prompt.', schema: ShownPrompt }

const invalidPrompt = {
  message: 'The prompt is not valid.',
  example: { details: [{ path: '/name', message: 'must be given' }] },
}

const operations = describeOperations('Prompts', {
  listPrompts: {
    summary: 'List prompts',
    description: 'Returns the prompts of the organisation, newest first, without archived ones unless asked for.',
    ...describePage('A page of prompts.', PromptList),
    query: promptParams,
  },
  createPrompt: {
    summary: 'Create a prompt',
    description:
      'Registers a prompt with the given ID or a new one, linked to the file of a repository if repository and path ' +
      'are given.',
    isIdempotent: true,
    body: NewPrompt,
    success: { ...shown, status: 201 },
    invalid: invalidPrompt,
  },
  getPrompt: {
    summary: 'Show a prompt',
    description: 'Returns the name of a prompt and the file it is linked to.',
    path: PromptPath,
    success: shown,
  },
  changePrompt: {
    summary: 'Change a prompt',
    description:
      'Changes what is given of the name, the link, the live branch and whether it is archived, and leaves the rest. ' +
      'Repository and path belong together; both null unlink the prompt.',
    path: PromptPath,
    body: PromptChange,
    success: {
      status: 200,
      description: 'The prompt. Without the scope prompts:read, only its ID and what was changed.',
      schema: ChangedPrompt,
    },
    invalid: invalidPrompt,
  },
})

const validateNew = createValidator(NewPrompt, 'The prompt')
const validateChange = createChangeValidator(PromptChange)

export const promptRoutes = ({ db, clock, findPrompt }: Services, { authenticated }: RouteWrapper) =>
  new Elysia({ name: 'prompts' })
    .get(
      '/api/v1/prompts',
      authenticated('prompts:read', async (context, _: object, { organisationId }) => {
        const { search, archived, ...page } = promptParams.parse(context.searchParams)
        const list = () => listPrompts(db, organisationId, page, { search, archived })
        // A search reads every prompt of the organisation.
        return replyPage(context, await (search === null ? list() : db.heavyRead(organisationId, list)))
      }),
      { detail: operations.listPrompts },
    )
    .post(
      '/api/v1/prompts',
      authenticated('prompts:write', async (context, _: object, caller) => {
        const { organisationId } = caller
        const { body, request } = await readIdempotentRequest(context, organisationId, validateNew)
        const { name, id = null, live_branch: liveBranch, ...link } = body
        const prompt = { name, id, liveBranch, file: parseLink(link) }
        const make = (sql: Sql) =>
          createPromptInTransaction(sql, clock, organisationId, prompt, keyHolder(caller, context))
        return replyCreated(context, await changeOnce(db, clock, request, make))
      }),
      { detail: operations.createPrompt },
    )
    .get(
      '/api/v1/prompts/:prompt_id',
      authenticated('prompts:read', async (context, { prompt_id: id }: PromptPath, { organisationId }) => {
        return context.replyData(await showPrompt(db, await findPrompt(organisationId, id)))
      }),
      { detail: operations.getPrompt },
    )
    .patch(
      '/api/v1/prompts/:prompt_id',
      authenticated('prompts:write', async (context, { prompt_id: id }: PromptPath, caller) => {
        const prompt = await findPrompt(caller.organisationId, id)
        const given = validateChange(parseJson(await readJsonText(context)))
        const { name, archived, live_branch: liveBranch } = given
        const change = { name, archived, liveBranch, file: parseLink(given) }
        const changed = await changePrompt(db, clock, prompt, change, keyHolder(caller, context))
        return context.replyData(visibleTo(caller, 'prompts:read', changed, ['id', ...Object.keys(given)]))
      }),
      { detail: operations.changePrompt },
    )

/** Undefined when no link is given, null for a prompt without a file. */
function parseLink({ repository, path }: Pick<PromptChange, 'repository' | 'path'>): PromptFile | null | undefined {
  if (repository === undefined && path === undefined) return undefined
  if (repository === null && path === null) return null
  if (typeof repository === 'string' && typeof path === 'string') return { repository, path }
  const missing = typeof repository === 'string' ? '/path' : '/repository'
  throw invalid('The link is not valid.', [
    { path: missing, message: 'must be given: repository and path belong together' },
  ])
}
