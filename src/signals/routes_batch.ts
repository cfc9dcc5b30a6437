import { Elysia } from 'elysia'
import type { Clock } from '../clock.ts'
import { type ApiError, invalid, ServiceError, statusOfCode, unavailable } from '../errors.ts'
import { mebibyte, parseJson, readByHandler, readJsonText } from '../http/body.ts'
import { describeOperation } from '../http/describe.ts'
import { createInFlightLimiter } from '../http/in_flight.ts'
import type { RouteWrapper } from '../http/middleware.ts'
import { limitHeaders } from '../limit/schema.ts'
import type { PromptFinder } from '../prompts/find.ts'
import { PromptPath } from '../prompts/schema.ts'
import type { BatchRecorder, BatchResult } from './batch.ts'
import { parseBatch } from './batch_items.ts'
import { NewSignalBatch, RecordedBatch } from './schema_batch.ts'

type Services = { clock: Clock; findPrompt: PromptFinder['find']; recordBatch: BatchRecorder }

/** 4 KiB on average for each of 1,000 signals. The embedded engine never returns the memory of its largest write. */
const maxBytes = 4 * mebibyte

const recording = describeOperation({
  id: 'createSignals',
  tag: 'Signals',
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
})

export function batchRoutes({ clock, findPrompt, recordBatch }: Services, { authenticated }: RouteWrapper) {
  const inFlight = createInFlightLimiter({
    perTenant: { requests: 32, bytes: 16 * mebibyte },
    inAll: { requests: 128, bytes: 64 * mebibyte },
    rejectWith: tooMany,
  })
  return new Elysia({ name: 'signal-batches' }).post(
    '/api/v1/prompts/:prompt_id/signals/batch',
    authenticated('signals:write', async (context, { prompt_id }: { prompt_id: string }, caller) => {
      // Otherwise anybody who reads the key of a page could use up its limit with one request.
      if (caller.browser) throw new ServiceError('forbidden', 'A browser key records signals one at a time.')
      const prompt = await findPrompt(caller.organisationId, prompt_id)
      if (context.request.headers.has('idempotency-key')) throw keyOfBatch()
      return inFlight.run(caller.organisationId, async (reserve) => {
        const text = await readJsonText(context, maxBytes, reserve)
        const now = clock.now()
        const items = await parseBatch(text, parseJson(text), now)
        const { results, usage } = await recordBatch(prompt, items, now, context.deadline)
        const data = results.map((result) => show(result, context.requestId))
        const headers = usage ? limitHeaders(usage, usage.month) : {}
        return context.replyData(data satisfies RecordedBatch['data'], 200, headers)
      })
    }),
    { ...readByHandler, detail: recording },
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

const tooMany = () => unavailable('Too many batches are in flight. Retry shortly.')
