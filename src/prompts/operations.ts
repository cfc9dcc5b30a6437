import type { Clock } from '../clock.ts'
import type { Db } from '../db/client.ts'
import { invalid } from '../errors.ts'
import { defineOperations, operation } from '../http/operation.ts'
import { pageAnswer } from '../http/paging.ts'
import { cursorParams } from '../lib/cursor_page.ts'
import { bodyOf, changeOf } from '../lib/validate.ts'
import { listErasedFiles, listPrompts, showPrompt } from './find.ts'
import { renameRepository, selectRepositories } from './link.ts'
import { changePrompt, createPrompt } from './manage.ts'
import {
  ErasedFileList,
  NewPrompt,
  PromptChange,
  PromptList,
  PromptPath,
  promptParams,
  RenamedRepository,
  RepositoryList,
  RepositoryRename,
  ShownPrompt,
} from './schema.ts'

type Needs = { db: Db; clock: Clock }

const shown = { status: 200, description: 'The prompt.', schema: ShownPrompt }

export const promptOperations = defineOperations('Prompts', {
  listPrompts: operation({
    method: 'GET',
    path: '/prompts',
    scope: 'prompts:read',
    summary: 'List prompts',
    description: 'Returns the prompts of the organisation, newest first, without archived ones unless asked for.',
    query: promptParams,
    answer: pageAnswer('A page of prompts.', PromptList),
    tool: {
      name: 'list_prompts',
      description: 'Lists the prompts of the organisation with their ids. Start here.',
      takes: ['search', 'limit', 'cursor'],
    },
    run({ db }: Needs, { query: { search, archived, ...page }, caller: { organisationId } }) {
      const list = () => listPrompts(db, organisationId, page, { search, archived })
      // A search reads every prompt of the organisation.
      return search === null ? list() : db.heavyRead(organisationId, list)
    },
  }),
  createPrompt: operation({
    method: 'POST',
    path: '/prompts',
    scope: 'prompts:write',
    summary: 'Create a prompt',
    description:
      'Registers a prompt with the given ID or a new one, linked to the file of a repository if repository and path ' +
      'are given.',
    body: bodyOf(NewPrompt, 'The prompt', requireWholeLink),
    answer: { ...shown, status: 201 },
    run: ({ db, clock }: Needs, { body, caller, actor }) => createPrompt(db, clock, caller, body, actor),
  }),
  listRepositories: operation({
    method: 'GET',
    path: '/repositories',
    scope: 'prompts:read',
    summary: 'List repositories',
    description: 'Returns the repositories that prompts are linked to: the 100 with the most prompts.',
    answer: { status: 200, description: 'The repositories.', schema: RepositoryList },
    run: ({ db }: Needs, { caller: { organisationId } }) =>
      db.heavyRead(organisationId, () => selectRepositories(db.sql, organisationId)),
  }),
  renameRepository: operation({
    method: 'POST',
    path: '/repositories/rename',
    scope: 'prompts:write',
    summary: 'Rename a repository',
    description:
      'Moves the links of all prompts, and the files of erased ones, after a repository was renamed or moved to another ' +
      'host. Addresses of pull requests that were recorded before stay.',
    body: bodyOf(RepositoryRename, 'The rename'),
    answer: { status: 200, description: 'The links are moved.', schema: RenamedRepository },
    run: ({ db, clock }: Needs, { body, caller, actor }) => renameRepository(db, clock, caller, body, actor),
  }),
  listErasedFiles: operation({
    method: 'GET',
    path: '/erased-files',
    scope: 'prompts:read',
    summary: 'List the files of erased prompts',
    description: 'Returns the files that erased prompts were linked to, for which sync creates no prompt again.',
    query: cursorParams,
    answer: pageAnswer('A page of files.', ErasedFileList),
    run: ({ db }: Needs, { query, caller }) => listErasedFiles(db, caller.organisationId, query),
  }),
  getPrompt: operation({
    method: 'GET',
    path: '/prompts/:prompt_id',
    scope: 'prompts:read',
    summary: 'Show a prompt',
    description: 'Returns the name of a prompt and the file it is linked to.',
    params: PromptPath,
    answer: shown,
    run: ({ db }: Needs, { prompt }) => showPrompt(db, prompt),
  }),
  changePrompt: operation({
    method: 'PATCH',
    path: '/prompts/:prompt_id',
    scope: 'prompts:write',
    summary: 'Change a prompt',
    description:
      'Changes what is given of the name, the link, the live branch and whether it is archived, and leaves the rest. ' +
      'Repository and path belong together; both null unlink the prompt.',
    params: PromptPath,
    body: changeOf(PromptChange, requireWholeLink),
    answer: shown,
    run: ({ db, clock }: Needs, { prompt, body, actor }) => changePrompt(db, clock, prompt, body, actor),
  }),
})

function requireWholeLink<Given extends Pick<PromptChange, 'repository' | 'path'>>(given: Given): Given {
  const { repository, path } = given
  if (typeof repository === typeof path) return given
  const missing = typeof repository === 'string' ? '/path' : '/repository'
  throw invalid('The link is not valid.', [
    { path: missing, message: 'must be given: repository and path belong together' },
  ])
}
