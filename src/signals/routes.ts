import { Elysia } from 'elysia'
import { keyHolder } from '../audit/record.ts'
import type { Services } from '../deps.ts'
import { type ApiError, invalid, notFound, ServiceError, statusOfCode, unavailable } from '../errors.ts'
import { createInFlightLimiter, mebibyte, parseJson, readJsonText, smallBody } from '../http/body.ts'
import { describeOperations } from '../http/describe.ts'
import type { RouteWrapper } from '../http/middleware.ts'
import { describePage, replyJsonPage } from '../http/paging.ts'
import { answerPreflight } from '../http/request_context.ts'
import { requireId } from '../lib/params.ts'
import { createSemaphore } from '../lib/semaphore.ts'
import { createValidator } from '../lib/validate.ts'
import { limitHeaders, monthlyLimitReached } from '../limit/admit.ts'
import { PromptPath } from '../prompts/schema.ts'
import type { BatchResult } from './batch.ts'
import { parseBatch } from './batch_items.ts'
import { keepNumbers, writeMetadata } from './metadata.ts'
import { isSearch, listSignals, signalJson } from './read.ts'
import type { Signal } from './record.ts'
import {
  CreatedSignal,
  ErasedSignal,
  NewSignal,
  NewSignalBatch,
  RecordedBatch,
  SignalList,
  SignalPath,
} from './schema.ts'
import { signalListParams } from './schema_params.ts'

type SignalParams = PromptPath & { signal_id: string }

const path = '/api/v1/prompts/:prompt_id/signals'

const operations = describeOperations('Signals', {
  createSignal: {
    summary: 'Record a signal',
    description:
      "Records positive or negative feedback on the prompt's output. Each recorded signal counts towards the " +
      "organisation's monthly limit, which resets with each calendar month, UTC.",
    path: PromptPath,
    isIdempotent: true,
    body: NewSignal,
    success: {
      status: 201,
      description: 'The signal is recorded and counted.',
      schema: CreatedSignal,
      headers: ['RateLimit', 'RateLimit-Policy'],
    },
    errors: [429],
  },
  createSignals: {
    summary: 'Record many signals',
    description:
      'Records up to 1,000 signals of a prompt in one transaction. Invalid signals do not fail the batch. If the monthly ' +
      'limit is reached within a batch, signals are accepted in order until it is full. The body is at most 4 MiB. Not ' +
      'available to browser keys.',
    path: PromptPath,
    body: NewSignalBatch,
    success: {
      status: 200,
      description: 'One result for each signal. Those with status 201 are recorded and counted.',
      schema: RecordedBatch,
      sometimes: ['RateLimit', 'RateLimit-Policy'],
    },
    invalid: {
      message: 'The batch is not valid.',
      example: { details: [{ path: '/signals', message: 'must be an array' }] },
    },
  },
  listSignals: {
    summary: 'List signals',
    description:
      'Returns the signals of a prompt, newest first, `limit` per page. With a filter on the value or the metadata, each ' +
      'request examines up to 5,000 signals: a page may have few signals or none, and still have a next_cursor.',
    path: PromptPath,
    ...describePage('A page of signals.', SignalList),
    query: signalListParams,
  },
  eraseSignal: {
    summary: 'Erase a signal',
    description:
      'Permanently erases a signal and its idempotency key. It disappears from lists, exports and statistics, but still ' +
      'counts towards the monthly limit.',
    path: SignalPath,
    success: { status: 200, description: 'The signal is erased.', schema: ErasedSignal },
  },
})

const validate = createValidator(NewSignal, 'The signal')

export const signalRoutes = (
  { db, clock, findPrompt, signalRecorder }: Services,
  { authenticated, publicRoute }: RouteWrapper,
) =>
  new Elysia({ name: 'signals' })
    .options(path, publicRoute(answerPreflight), { detail: { hide: true } })
    .post(
      path,
      authenticated('signals:write', async (context, { prompt_id }: PromptPath, { organisationId, browser }) => {
        const found = findPrompt(organisationId, prompt_id)
        const prompt = found instanceof Promise ? await found : found
        const { idempotencyKey } = context
        // Every visitor of a page has its key, and must not use up the organisation's memory for larger bodies.
        const text = await readJsonText(context, browser ? smallBody : undefined)
        const signal = parseSignal(text, idempotencyKey)
        const browserKey = browser && { id: browser.countedWith, monthlyLimit: browser.monthlyLimit }
        const result = await signalRecorder.record(prompt, signal, context.deadline, browserKey)
        const { id, createdAt, outcome, month, limitedBy } = result
        if (outcome === 'refused') return context.replyError(monthlyLimitReached(result, month, limitedBy))
        if (outcome === 'missing') throw notFound()
        if (outcome === 'conflict') throw usedForAnother()
        const headers = limitHeaders(result, month)
        if (outcome === 'replayed') headers['idempotent-replayed'] = 'true'
        const data = { id: id as number, value: signal.value, created_at: createdAt.toISOString() }
        return context.replyData(data satisfies CreatedSignal['data'], 201, headers)
      }),
      { detail: operations.createSignal },
    )
    .get(
      path,
      authenticated('signals:read', async (context, { prompt_id }: PromptPath, { organisationId }) => {
        const prompt = await findPrompt(organisationId, prompt_id)
        const query = signalListParams.parse(context.searchParams)
        const list = () => listSignals(db, prompt, query)
        const page = await (isSearch(query.filter) ? db.heavyRead(organisationId, list) : list())
        const json = `[${page.data.map(signalJson).join()}]`
        return replyJsonPage(context, `/api/v1/prompts/${prompt_id}/signals`, json, page.limit, page.nextCursor)
      }),
      { detail: operations.listSignals },
    )
    .delete(
      `${path}/:signal_id`,
      authenticated('signals:delete', async (context, { prompt_id, signal_id }: SignalParams, caller) => {
        const prompt = await findPrompt(caller.organisationId, prompt_id)
        const id = requireId(signal_id)
        const { eraseOne } = await import('./erase.ts')
        await eraseOne(db, clock, prompt, id, keyHolder(caller, context))
        return context.replyData({ id })
      }),
      { detail: operations.eraseSignal },
    )

function parseSignal(text: string, idempotencyKey: string | null): Signal {
  const body = validate(parseJson(text))
  const { metadata } = keepNumbers(text, body)
  return { value: body.value, metadata: metadata ? writeMetadata(metadata) : null, idempotencyKey }
}

const usedForAnother = () =>
  invalid('The Idempotency-Key was used for another signal.', [
    { path: 'Idempotency-Key', message: 'must be new, or come with the same prompt and body as before' },
  ])

/** 4 KiB on average for each of 1,000 signals. The embedded engine never returns the memory of its largest write. */
const maxBytes = 4 * mebibyte

export function batchRoutes({ clock, findPrompt, recordBatch }: Services, { authenticated }: RouteWrapper) {
  const inFlight = createInFlightLimiter({
    perTenant: { requests: 32, bytes: 16 * mebibyte },
    inAll: { requests: 128, bytes: 64 * mebibyte },
    rejectWith: () => unavailable('overload', 'Too many batches are in flight. Retry shortly.'),
  })
  // One piece of work at a time: a single signal waits for it whenever the event loop turns.
  const parsing = createSemaphore({ permits: 1 })
  return new Elysia({ name: 'signal-batches' }).post(
    `${path}/batch`,
    authenticated('signals:write', async (context, { prompt_id }: PromptPath, caller) => {
      // Otherwise anybody who reads the key of a page could use up its limit with one request.
      if (caller.browser) throw new ServiceError('forbidden', 'A browser key records signals one at a time.')
      const prompt = await findPrompt(caller.organisationId, prompt_id)
      if (context.request.headers.has('idempotency-key')) throw keyOfBatch()
      return inFlight.run(caller.organisationId, async (reserve) => {
        const text = await readJsonText(context, maxBytes, reserve)
        const now = clock.now()
        const items = await parsing(() => parseBatch(text, parseJson(text), now), { tenant: caller.organisationId })
        const { results, usage } = await recordBatch(prompt, items, now, context.deadline)
        const data = results.map((result) => show(result, context.requestId))
        const headers = usage ? limitHeaders(usage, usage.month) : {}
        return context.replyData(data satisfies RecordedBatch['data'], 200, headers)
      })
    }),
    { detail: operations.createSignals },
  )
}

function show(result: BatchResult, requestId: string): RecordedBatch['data'][number] {
  if ('error' in result) {
    const { code, message, context } = result.error as ApiError & { code: 'validation_error' | 'rate_limited' }
    return { status: statusOfCode[code], error: { code, message, ...context, request_id: requestId } }
  }
  const { id, createdAt, isReplayed } = result
  return { status: 201, id, created_at: createdAt.toISOString(), ...(isReplayed ? { replayed: true } : {}) }
}

/** The header is rejected, because it would suggest that the whole batch can be replayed. */
const keyOfBatch = () =>
  invalid('A batch cannot have an Idempotency-Key.', [
    { path: 'Idempotency-Key', message: 'must be absent. Give each signal an idempotency_key instead' },
  ])
