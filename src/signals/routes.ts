import { Elysia } from 'elysia'
import { notFound } from '../errors.ts'
import { parseJson, readByHandler, readJsonText, smallBody } from '../http/body.ts'
import { answerPreflight } from '../http/cors.ts'
import { describeOperation } from '../http/describe.ts'
import type { RouteWrapper } from '../http/middleware.ts'
import { parseIdempotencyKey } from '../lib/idempotency_key.ts'
import { createValidator } from '../lib/validate.ts'
import { limitHeaders, monthlyLimitReached } from '../limit/headers.ts'
import type { PromptFinder } from '../prompts/find.ts'
import { PromptPath } from '../prompts/schema.ts'
import { parseMetadata } from './metadata.ts'
import type { Signal, SignalRecorder } from './record.ts'
import { CreatedSignal, NewSignal } from './schema.ts'

type Services = {
  findPrompt: PromptFinder['find']
  findCachedPrompt: PromptFinder['findCached']
  signalRecorder: SignalRecorder
}

const path = '/api/v1/prompts/:prompt_id/signals'

const detail = describeOperation({
  id: 'createSignal',
  tag: 'Signals',
  summary: 'Record a signal',
  description:
    "Records positive or negative feedback on the prompt's output. Each recorded signal counts towards the " +
    "organisation's monthly limit, which begins anew with each calendar month, UTC.",
  path: PromptPath,
  isIdempotent: true,
  body: NewSignal,
  success: {
    status: 201,
    description: 'The signal is recorded and counted.',
    schema: CreatedSignal,
    headers: ['RateLimit', 'RateLimit-Policy'],
    sometimes: ['Idempotent-Replayed'],
  },
  errors: [429],
})

const validate = createValidator(NewSignal, 'The signal')

export const signalRoutes = (
  { findPrompt, findCachedPrompt, signalRecorder }: Services,
  { authenticated, publicRoute }: RouteWrapper,
) =>
  new Elysia({ name: 'signals' }).options(path, publicRoute(answerPreflight), { detail: { hide: true } }).post(
    path,
    authenticated('signals:write', async (context, { prompt_id }: { prompt_id: string }, caller) => {
      const { organisationId, browser } = caller
      if (browser?.prompts && !browser.prompts.includes(prompt_id)) throw notFound()
      const prompt = findCachedPrompt(organisationId, prompt_id) ?? (await findPrompt(organisationId, prompt_id))
      const idempotencyKey = parseIdempotencyKey(context.request.headers.get('idempotency-key'))
      // Whoever visits a page has its key, and must not take up what the organisation has for larger bodies.
      const text = await readJsonText(context, browser ? smallBody : undefined)
      const signal = parseSignal(text, idempotencyKey)
      const browserKey = browser && { id: browser.countedWith, monthlyLimit: browser.monthlyLimit }
      const recorded = await signalRecorder.record(prompt, signal, context.deadline, browserKey)
      const { id, createdAt, outcome, used, limit, month, limitedBy } = recorded
      if (outcome === 'refused') return context.replyError(monthlyLimitReached(used, limit, month, limitedBy))
      const headers = limitHeaders(used, limit, month)
      if (outcome === 'replayed') headers['idempotent-replayed'] = 'true'
      const data = { id: id as number, value: signal.value, created_at: createdAt.toISOString() }
      return context.replyData(data satisfies CreatedSignal['data'], 201, headers)
    }),
    { ...readByHandler, detail },
  )

function parseSignal(text: string, idempotencyKey: string | null): Signal {
  const { value, metadata } = validate(parseJson(text))
  return { value, metadata: metadata === undefined ? null : parseMetadata(text), idempotencyKey }
}
