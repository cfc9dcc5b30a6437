import type { Clock } from '../clock.ts'
import type { Db } from '../db/client.ts'
import { invalid } from '../errors.ts'
import { defineOperations, operation } from '../http/operation.ts'
import { bodyOf } from '../lib/validate.ts'
import { type Prompt, showPrompt } from '../prompts/find.ts'
import { parsePromptFile } from '../prompts/link.ts'
import { PromptPath } from '../prompts/schema.ts'
import type { HistoryReader } from './read.ts'
import { recordEntry } from './record.ts'
import {
  EntriesToRemove,
  EntryDiff,
  EntryPath,
  HistoryPage,
  NewHistoryEntry,
  RecordedEntry,
  RemovedEntries,
  RemovedEntry,
} from './schema.ts'
import { HistoryBatch, HistoryBatchResult } from './schema_batch.ts'
import { diffParams, type HistoryQuery, historyParams, parseHistoryQuery } from './schema_params.ts'

type Needs = {
  db: Db
  clock: Clock
  findPrompt(organisationId: number, id: string): Prompt | Promise<Prompt>
  historyReader: HistoryReader
}

const path = '/prompts/:prompt_id/history'

const needsPullRequest = 'must be given, with pr_url, when the action is pr_merged'

export const historyOperations = defineOperations('History', {
  getPromptHistory: operation({
    method: 'GET',
    path,
    scope: 'history:read',
    summary: 'Get the edit history of a prompt',
    description:
      'Returns who changed the prompt, when, and how the change was deployed, newest first. ' +
      'A page past the end is empty and has the true totals. With filters, the totals count the matching entries.',
    params: PromptPath,
    query: historyParams,
    answer: { status: 200, description: 'One page of the history.', schema: HistoryPage, headers: ['Link', 'ETag'] },
    unchanged: true,
    tool: {
      name: 'get_history',
      description: 'Who changed a prompt, when, and how it was deployed: directly or by pull request. Newest first.',
      takes: ['branch', 'since', 'until', 'limit', 'page'],
    },
    async reply({ historyReader }: Needs, context, { prompt_id }, { organisationId }) {
      const found = await historyReader.findHistory(organisationId, prompt_id)
      const query = parseHistoryQuery(context.queryText)
      const etag = etagOf(found.version, query)
      if (matchesEtag(context.request.headers.get('if-none-match'), etag)) {
        return context.reply(304, null, cachingHeaders(etag))
      }
      const page = await historyReader.readPage(found, query)
      return context.reply(200, page.body, { ...cachingHeaders(etagOf(page.version, query)), link: page.links })
    },
  }),
  recordPromptHistory: operation({
    method: 'POST',
    path,
    scope: 'history:write',
    summary: 'Record a history entry',
    description:
      'Adds an entry at its place in time. The pr_* actions need a pull request; deployed must not have one. ' +
      'Repeating a request is safe: a known entry with the same action, branch, commit and pull request is returned, ' +
      'unless another commit went live on the branch between the two.',
    params: PromptPath,
    body: bodyOf(NewHistoryEntry, 'The history entry'),
    answer: {
      status: 201,
      description: 'The entry is in the history.',
      schema: RecordedEntry,
      sometimes: ['Idempotent-Replayed'],
    },
    invalid: {
      message: 'The history entry is not valid.',
      example: { details: [{ path: '/pr_number', message: needsPullRequest }] },
    },
    async run({ db, clock }: Needs, { prompt, body, context, headers }) {
      const { entry, isNew } = await recordEntry(db, clock, prompt, body, context.deadline)
      if (!isNew) headers['idempotent-replayed'] = 'true'
      return entry
    },
  }),
  removeHistoryEntry: operation({
    method: 'DELETE',
    path: `${path}/:entry_id`,
    scope: 'history:delete',
    summary: 'Remove a history entry',
    description:
      'Removes an entry that is wrong. Impact changes immediately. Sync and the webhook do not bring back what they ' +
      'reported before; recording it again does.',
    params: EntryPath,
    answer: { status: 200, description: 'The entry is removed.', schema: RemovedEntry },
    async run({ db, clock }: Needs, { prompt, params: { entry_id: id }, actor }) {
      const { removeEntry } = await import('./erase.ts')
      await removeEntry(db, clock, prompt, id, actor)
      return { id }
    },
  }),
  removeHistoryEntries: operation({
    method: 'POST',
    path: '/history/remove',
    scope: 'history:delete',
    summary: 'Remove the entries of a branch or a file',
    description:
      'Removes deployed and pr_merged entries: those of a branch, or those that sync and the webhook added while the ' +
      'prompt was linked to a file; with prompt_id only those of this prompt. A sync that reads them again brings them back.',
    body: bodyOf(EntriesToRemove, 'The removal', parseRemoval),
    answer: { status: 200, description: 'The entries are removed.', schema: RemovedEntries },
    errors: [404],
    async run({ db, clock, findPrompt }: Needs, { body: { promptId, ...wanted }, caller, actor }) {
      const prompt = promptId === null ? null : await findPrompt(caller.organisationId, promptId)
      const { removeEntries } = await import('./erase.ts')
      return { entries: await removeEntries(db, clock, caller, prompt, wanted, actor) }
    },
  }),
  getHistoryDiff: operation({
    method: 'GET',
    path: `${path}/:entry_id/diff`,
    scope: 'prompts:read',
    summary: 'Show what a change did to the text',
    description:
      'Returns the text of the prompt after a change and before it, and the difference. Texts are known if the organisation ' +
      'stores them and a sync or a batch gave them.',
    params: EntryPath,
    query: diffParams,
    answer: { status: 200, description: 'The texts and their difference.', schema: EntryDiff },
    async run({ db }: Needs, { prompt, params, query, caller }) {
      const { path: file } = await showPrompt(db, prompt)
      const { readDiff } = await import('./diff.ts')
      return db.heavyRead(caller.organisationId, () =>
        readDiff(db.sql, prompt, file ?? params.prompt_id, params.entry_id, query.base),
      )
    },
  }),
  recordHistoryBatch: operation({
    method: 'POST',
    path: '/history/batch',
    scope: 'history:write',
    summary: 'Record entries read from a repository',
    description:
      'Records what was read in a clone in the histories of several prompts, all or nothing. The command sync uses it. ' +
      'It is safe to repeat, and to use with the webhook: the same change becomes one entry, with the fields that GitHub ' +
      'signed. The audit log has what it changes or removes.',
    body: bodyOf(HistoryBatch, 'The batch'),
    answer: { status: 200, description: 'The entries are recorded.', schema: HistoryBatchResult },
    errors: [404],
    invalid: {
      message: 'The batch is not valid.',
      example: { details: [{ path: '/entries/0/pr_number', message: needsPullRequest }] },
    },
    async run({ db, clock, findPrompt }: Needs, { body, caller: { organisationId }, actor }) {
      const { recordHistoryBatch } = await import('./batch.ts')
      const find = (id: string) => findPrompt(organisationId, id)
      return recordHistoryBatch(db, clock, organisationId, body, find, actor)
    },
  }),
})

function parseRemoval({ branch, prompt_id, repository, path, dry_run = false }: EntriesToRemove) {
  const hasFile = repository !== undefined || path !== undefined
  if (branch === undefined && !hasFile) {
    const message = 'must be given, unless repository and path are'
    throw invalid('The removal is not valid.', [{ path: '/branch', message }])
  }
  const file = hasFile ? parsePromptFile({ repository: repository ?? '', path: path ?? '' }) : null
  return { promptId: prompt_id ?? null, branch: branch ?? null, file, isDryRun: dry_run }
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
