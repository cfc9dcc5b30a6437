import type { Clock } from '../clock.ts'
import type { Db } from '../db/client.ts'
import { type ApiError, invalid, notFound, ServiceError, statusOfCode } from '../errors.ts'
import { mebibyte, readJsonText } from '../http/body.ts'
import { defineOperations, operation } from '../http/operation.ts'
import { pageAnswer } from '../http/paging.ts'
import { readOwnSignals } from '../impact/own_signals.ts'
import { parseJson, smallBody } from '../lib/json.ts'
import { bodyOf, createValidator } from '../lib/validate.ts'
import { limitHeaders, monthlyLimitReached } from '../limit/admit.ts'
import type { Prompt } from '../prompts/find.ts'
import { PromptPath } from '../prompts/schema.ts'
import type { SignalRollup } from '../stats/rollup.ts'
import { type BatchRecorder, type BatchResult, parseBatch } from './batch.ts'
import { keepNumbers, maxSignalValues, writeMetadata } from './metadata.ts'
import { isSearch, listSignals, signalJson } from './read.ts'
import { ofPage, type Signal, type SignalRecorder } from './record.ts'
import {
  CreatedSignal,
  ErasedSignal,
  ErasedSignals,
  NewSignal,
  NewSignalBatch,
  RecordedBatch,
  SignalList,
  SignalPath,
} from './schema.ts'
import { eraseParams, isMetadataName, signalListParams } from './schema_params.ts'

type Needs = {
  db: Db
  clock: Clock
  findPrompt(organisationId: number, id: string): Prompt | Promise<Prompt>
  signalRecorder: SignalRecorder
  recordBatch: BatchRecorder
  rollup: SignalRollup
}

const path = '/prompts/:prompt_id/signals'

/** 4 KiB on average for each of 1,000 signals. The embedded engine never returns the memory of its largest write. */
const maxBatchBytes = 4 * mebibyte

const validate = createValidator(NewSignal, 'The signal')

export const signalOperations = defineOperations('Signals', {
  createSignal: operation({
    method: 'POST',
    path,
    scope: 'signals:write',
    summary: 'Record a signal',
    description:
      "Records positive or negative feedback on the prompt's output. Each recorded signal counts towards the " +
      "organisation's monthly limit, which resets with each calendar month, UTC. One with a " +
      'known subject replaces that signal instead.',
    params: PromptPath,
    isIdempotent: true,
    body: bodyOf(NewSignal, 'The signal'),
    answer: {
      status: 201,
      description: 'The signal is recorded and counted.',
      schema: CreatedSignal,
      headers: ['RateLimit', 'RateLimit-Policy'],
      alternative: { status: 200, description: 'The signal replaced the one with its subject.' },
    },
    errors: [429],
    tool: {
      name: 'record_signal',
      description: 'Records feedback on an output of the prompt. Counts towards the monthly limit.',
      more: {
        metadata: { type: 'object', description: 'commit_sha in it names the commit that gave the output' },
        idempotency_key: { type: 'string', description: 'signals with the same key are one' },
      },
    },
    async reply({ findPrompt, signalRecorder }: Needs, context, { prompt_id }, { organisationId, browser }) {
      const found = findPrompt(organisationId, prompt_id)
      const prompt = found instanceof Promise ? await found : found
      const { idempotencyKey } = context
      // Every visitor of a page has its key, and must not use up the organisation's memory for larger bodies.
      const text = await readJsonText(context, browser ? smallBody : undefined)
      const signal = parseSignal(text, idempotencyKey)
      const browserKey = browser && { id: browser.countedWith, monthlyLimit: browser.monthlyLimit }
      const result = await signalRecorder.record(prompt, signal, context.deadline, browserKey)
      const { id, createdAt, outcome, month, limitedBy, isReplacement } = result
      if (outcome === 'refused') return context.replyError(monthlyLimitReached(result, month, limitedBy))
      if (outcome === 'missing') throw notFound()
      if (outcome === 'conflict') throw usedForAnother()
      const headers = limitHeaders(result, month)
      if (outcome === 'replayed') headers['idempotent-replayed'] = 'true'
      const data = { id: id as number, value: signal.value, created_at: createdAt.toISOString() }
      if (isReplacement) return context.replyData({ ...data, replaced: true }, 200, headers)
      return context.replyData(data satisfies CreatedSignal['data'], 201, headers)
    },
  }),
  listSignals: operation({
    method: 'GET',
    path,
    scope: 'signals:read',
    summary: 'List signals',
    description:
      'Returns the signals of a prompt, newest first, `limit` per page. With a filter on the value, the change or the metadata, each ' +
      'request examines up to 5,000 signals: a page may have few signals or none, and still have a next_cursor.',
    params: PromptPath,
    query: signalListParams,
    answer: pageAnswer('A page of signals.', SignalList),
    tool: {
      name: 'list_signals',
      description: 'Lists single signals with their metadata, newest first.',
      takes: ['value', 'since', 'until', 'change', 'limit', 'cursor'],
      more: {
        metadata: {
          type: 'object',
          description: 'only signals with these values',
          additionalProperties: { type: 'string' },
        },
      },
    },
    async run({ db, rollup }: Needs, { prompt, query, caller, context }) {
      const { change } = query
      const own = change === null ? undefined : await readOwnSignals(db, rollup, prompt, change, context.deadline)
      const list = () => listSignals(db, prompt, query, own)
      const page = await (isSearch(query) ? db.heavyRead(caller.organisationId, list) : list())
      return { ...page, data: `[${page.data.map(signalJson).join()}]` }
    },
  }),
  eraseSignals: operation({
    method: 'DELETE',
    path,
    scope: 'signals:write',
    scopeFor: (query) => ([...query.keys()].some(isMetadataName) ? 'signals:delete' : 'signals:write'),
    summary: 'Withdraw a signal, or erase those of a person',
    description:
      'With a subject, withdraws the signal that has it, for 90 days; a browser key withdraws what was sent with it. With ' +
      'filters on the metadata (scope signals:delete), permanently erases all signals that match, in bounded steps: repeat ' +
      'with next_cursor until it is null. Erased signals still count towards the monthly limit.',
    params: PromptPath,
    query: eraseParams,
    answer: { status: 200, description: 'The signals are erased.', schema: ErasedSignals },
    async run({ db, clock }: Needs, { prompt, query, caller: { browser }, actor }) {
      const { subject, ...filter } = query
      if (subject === null) return (await import('./erase_matching.ts')).eraseMatching(db, clock, prompt, filter, actor)
      const { withdraw } = await import('./erase.ts')
      return {
        id: await withdraw(db, clock, prompt, ofPage(browser ? { id: browser.countedWith } : null, subject), actor),
      }
    },
  }),
  createSignals: operation({
    method: 'POST',
    path: `${path}/batch`,
    scope: 'signals:write',
    summary: 'Record many signals',
    description:
      'Records up to 1,000 signals of a prompt in one transaction. Invalid signals do not fail the batch. If the monthly ' +
      'limit is reached within a batch, signals are accepted in order until it is full. The body is at most 4 MiB. Not ' +
      'available to browser keys.',
    params: PromptPath,
    body: bodyOf(NewSignalBatch, 'The batch'),
    answer: {
      status: 200,
      description:
        'One result for each signal. Those with status 201 are recorded and counted; those with 200 replaced one.',
      schema: RecordedBatch,
      sometimes: ['RateLimit', 'RateLimit-Policy'],
    },
    async reply({ clock, findPrompt, recordBatch }: Needs, context, { prompt_id }, { organisationId, browser }) {
      // Otherwise anybody who reads the key of a page could use up its limit with one request.
      if (browser) throw new ServiceError('forbidden', 'A browser key records signals one at a time.')
      const prompt = await findPrompt(organisationId, prompt_id)
      if (context.request.headers.has('idempotency-key')) throw keyOfBatch()
      const text = await readJsonText(context, maxBatchBytes)
      const now = clock.now()
      const items = await parseBatch(text, now)
      const { results, usage } = await recordBatch(prompt, items, now, context.deadline)
      const data = results.map((result) => show(result, context.requestId))
      const headers = usage ? limitHeaders(usage, usage.month) : {}
      return context.replyData(data satisfies RecordedBatch['data'], 200, headers)
    },
  }),
  eraseSignal: operation({
    method: 'DELETE',
    path: `${path}/:signal_id`,
    scope: 'signals:delete',
    summary: 'Erase a signal',
    description:
      'Permanently erases a signal and its idempotency key. It disappears from lists, exports and statistics, but still ' +
      'counts towards the monthly limit.',
    params: SignalPath,
    answer: { status: 200, description: 'The signal is erased.', schema: ErasedSignal },
    async run({ db, clock }: Needs, { prompt, params: { signal_id: id }, actor }) {
      const { eraseOne } = await import('./erase.ts')
      await eraseOne(db, clock, prompt, id, actor)
      return { id }
    },
  }),
})

function parseSignal(text: string, idempotencyKey: string | null): Signal {
  const body = validate(parseJson(text, undefined, maxSignalValues))
  const { metadata } = keepNumbers(text, body)
  const { value, subject } = body
  return { value, metadata: metadata ? writeMetadata(metadata) : null, idempotencyKey, subject }
}

const usedForAnother = () =>
  invalid('The Idempotency-Key was used for another signal.', [
    { path: 'Idempotency-Key', message: 'must be new, or come with the same prompt and body as before' },
  ])

function show(result: BatchResult, requestId: string): RecordedBatch['data'][number] {
  if ('error' in result) {
    const { code, message, context } = result.error as ApiError & { code: 'validation_error' | 'rate_limited' }
    return { status: statusOfCode[code], error: { code, message, ...context, request_id: requestId } }
  }
  const { id, createdAt, isReplayed, isReplacement } = result
  const shown = { id, created_at: createdAt.toISOString(), ...(isReplayed && { replayed: true as const }) }
  return isReplacement ? { status: 200, ...shown, replaced: true } : { status: 201, ...shown }
}

/** The header is rejected, because it would suggest that the whole batch can be replayed. */
const keyOfBatch = () =>
  invalid('A batch cannot have an Idempotency-Key.', [
    { path: 'Idempotency-Key', message: 'must be absent. Give each signal an idempotency_key instead' },
  ])
