import { Elysia } from 'elysia'
import { keyHolder } from '../audit/record.ts'
import type { Clock } from '../clock.ts'
import type { Db } from '../db/client.ts'
import { notFound } from '../errors.ts'
import { describeOperation } from '../http/describe.ts'
import type { RouteWrapper } from '../http/middleware.ts'
import { parseId } from '../lib/params.ts'
import type { PromptFinder } from '../prompts/find.ts'
import { ErasedSignal, SignalPath } from './schema.ts'

type Services = { db: Db; clock: Clock; findPrompt: PromptFinder['find'] }
type SignalParams = { prompt_id: string; signal_id: string }

const erasing = describeOperation({
  id: 'eraseSignal',
  tag: 'Signals',
  summary: 'Erase a signal',
  description:
    "Erases a signal and its idempotency key for good. It is gone from lists, exports and counts over time; the month's " +
    'count and limit stay as they are.',
  path: SignalPath,
  success: { status: 200, description: 'The signal is erased.', schema: ErasedSignal },
})

export const eraseRoutes = ({ db, clock, findPrompt }: Services, { authenticated }: RouteWrapper) =>
  new Elysia({ name: 'signal-erasure' }).delete(
    '/api/v1/prompts/:prompt_id/signals/:signal_id',
    authenticated('signals:delete', async (context, { prompt_id, signal_id }: SignalParams, caller) => {
      const prompt = await findPrompt(caller.organisationId, prompt_id)
      const id = parseId(signal_id)
      if (id === undefined) throw notFound()
      const { eraseOne } = await import('./erase.ts')
      await eraseOne(db, clock, prompt, prompt_id, id, keyHolder(caller, context))
      return context.replyData({ id })
    }),
    { detail: erasing },
  )
