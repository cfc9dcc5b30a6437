import { Elysia } from 'elysia'
import { invalid } from '../errors.ts'
import { authenticated } from '../http/auth.ts'
import { readJson } from '../http/body.ts'
import { describeOperation } from '../http/describe.ts'
import type { KeyVerifier } from '../keys/verify.ts'
import { createValidator } from '../lib/validate.ts'
import type { PromptFinder } from '../prompts/find.ts'
import { limitHeaders } from './limit.ts'
import { scanMetadata } from './metadata.ts'
import type { Signal, SignalRecorder } from './record.ts'
import { readRepeatKey } from './repeat_key.ts'
import { CreatedSignal, NewSignal, SignalHeaders } from './schema.ts'

type Services = { verifyKey: KeyVerifier; findPrompt: PromptFinder; signals: SignalRecorder }

const detail = describeOperation({
  id: 'createSignal',
  tag: 'Signals',
  summary: 'Record a signal',
  description:
    "Records positive or negative feedback on the prompt's output. Each recorded signal counts towards the " +
    "organisation's monthly limit, which begins anew with each calendar month, UTC.",
  headers: SignalHeaders,
  body: NewSignal,
  success: {
    status: 201,
    description: 'The signal is recorded and counted.',
    schema: CreatedSignal,
    headers: ['RateLimit', 'RateLimit-Policy'],
    sometimes: ['Idempotent-Replayed'],
  },
  errors: [401, 404, 422, 429, 500],
})

const validate = createValidator(NewSignal, 'The signal')

export const signalRoutes = ({ verifyKey, findPrompt, signals }: Services) =>
  new Elysia({ name: 'signals' }).use(authenticated(verifyKey)).post(
    '/api/v1/prompts/:prompt_id/signals',
    async ({ caller, inTime, params, request, set }): Promise<CreatedSignal> => {
      const prompt = await inTime(findPrompt(caller.organisationId, params.prompt_id))
      const { value, ...signal } = await readSignal(request)
      const { id, createdAt, outcome, used, limit, month } = await inTime(signals.record(prompt, { value, ...signal }))
      set.status = 201
      Object.assign(set.headers, limitHeaders(used, limit, month))
      if (outcome === 'repeated') set.headers['idempotent-replayed'] = 'true'
      return { data: { id, value, created_at: createdAt.toISOString() } }
    },
    // The body is read by the handler, after the key and the prompt were checked.
    { parse: 'none', detail },
  )

async function readSignal(request: Request): Promise<Signal & { value: NewSignal['value'] }> {
  const repeatKey = readRepeatKey(request.headers.get('idempotency-key'))
  const body = await readJson(request)
  const { value, metadata } = validate(body.value)
  if (metadata === undefined) return { value, metadata: null, repeatKey }
  const { raw, problems } = scanMetadata(body.text)
  if (problems.length > 0) throw invalid('The metadata cannot be kept as sent.', problems)
  return { value, metadata: raw, repeatKey }
}
