import { Elysia } from 'elysia'
import type { Services } from '../deps.ts'
import { unavailable } from '../errors.ts'
import { describeOperations } from '../http/describe.ts'
import type { RouteWrapper } from '../http/middleware.ts'
import type { RequestContext } from '../http/request_context.ts'
import { replyStream } from '../http/stream.ts'
import { createSemaphore } from '../lib/semaphore.ts'
import { PromptPath } from '../prompts/schema.ts'
import { type ExportStep, exportSignals, type SignalSource } from './read.ts'
import { exportExamples } from './schema.ts'
import { exportParams } from './schema_params.ts'

const about =
  'Ordered by time, as lines of JSON or as CSV, gzipped if the client accepts it. A response that was cut off is resumed ' +
  'with `after`. Signals recorded during the export may or may not be included.'

const described = {
  query: exportParams,
  success: { status: 200, description: 'The signals.', texts: exportExamples },
}

const operations = describeOperations('Signals', {
  exportSignals: {
    ...described,
    summary: 'Export the signals of a prompt',
    description: `Exports all signals of a prompt. ${about}`,
    path: PromptPath,
  },
  exportAllSignals: {
    ...described,
    summary: 'Export all signals',
    description: `Exports all signals of the organisation, prompt by prompt. ${about}`,
  },
})

const types = { ndjson: 'application/x-ndjson', csv: 'text/csv; charset=utf-8' }

export function exportRoutes({ db, drain, log, findPrompt }: Services, { authenticated }: RouteWrapper) {
  // An export lasts as long as its client reads, so no other export waits for its end.
  const tooMany = 'Too many exports are running: two for this organisation, or 16 in total. Retry when one has ended.'
  const rejectWith = () => unavailable('overload', tooMany, 10)
  const limitExports = createSemaphore({ permits: 16, permitsPerTenant: 2, maxWaiting: 0, rejectWith })

  async function answer(context: RequestContext, source: SignalSource, name: string): Promise<Response> {
    const query = exportParams.parse(context.searchParams)
    const release = await limitExports.acquire({ tenant: source.organisationId })
    const onEnd = (error?: unknown) => {
      release()
      if (error) log.error({ err: error, request_id: context.requestId }, 'export aborted')
    }
    try {
      const steps = exportSignals(db, source, query)
      return await replyStream(context, textsOf(steps, context), {
        type: types[query.format],
        fileName: `${name}.${query.format}`,
        isStopping: () => drain.isDrained,
        onEnd,
      })
    } catch (error) {
      release()
      throw error
    }
  }

  return new Elysia({ name: 'signal-exports' })
    .get(
      '/api/v1/prompts/:prompt_id/signals/export',
      authenticated('signals:read', async (context, { prompt_id }: PromptPath, { organisationId }) => {
        const prompt = await findPrompt(organisationId, prompt_id)
        return answer(context, { organisationId, prompt }, `signals-${prompt_id}`)
      }),
      { detail: operations.exportSignals },
    )
    .get(
      '/api/v1/signals/export',
      authenticated('signals:read', async (context, _: object, { organisationId }) =>
        answer(context, { organisationId, prompt: null }, 'signals'),
      ),
      { detail: operations.exportAllSignals },
    )
}

/** Aborts the export when its key is revoked, because it may last for hours. */
async function* textsOf(steps: AsyncIterable<ExportStep>, { verifyAgain }: RequestContext): AsyncGenerator<string> {
  for await (const { text } of steps) {
    await verifyAgain?.()
    yield text
  }
}
