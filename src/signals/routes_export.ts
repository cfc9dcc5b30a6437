import { Elysia } from 'elysia'
import type { Db } from '../db/client.ts'
import type { HeavyReads } from '../db/heavy_reads.ts'
import { unavailable } from '../errors.ts'
import { describeOperations } from '../http/describe.ts'
import type { Drain } from '../http/drain.ts'
import type { RouteWrapper } from '../http/middleware.ts'
import { searchOf } from '../http/paging.ts'
import type { RequestContext } from '../http/request_context.ts'
import { replyStream } from '../http/stream.ts'
import { createSemaphore } from '../lib/semaphore.ts'
import type { Log } from '../log.ts'
import type { PromptFinder } from '../prompts/find.ts'
import { PromptPath } from '../prompts/schema.ts'
import type { ExportSource, ExportStep } from './export.ts'
import { exportExamples } from './schema_list.ts'
import { exportParams } from './schema_params.ts'

type Services = { db: Db; drain: Drain; log: Log; findPrompt: PromptFinder['find']; heavyReads: HeavyReads }
type PromptParams = { prompt_id: string }

const about =
  'In the order of their times, as lines of JSON or as CSV, gzipped if you accept that. An answer that was cut goes on ' +
  'with after. Signals that are recorded meanwhile may be in it or not.'

const described = {
  query: exportParams,
  success: { status: 200, description: 'The signals.', texts: exportExamples },
}

const operations = describeOperations('Signals', {
  exportSignals: {
    ...described,
    summary: 'Export the signals of a prompt',
    description: `All signals of a prompt. ${about}`,
    path: PromptPath,
  },
  exportAllSignals: {
    ...described,
    summary: 'Export all signals',
    description: `All signals of the organisation, prompt by prompt. ${about}`,
  },
})

const types = { ndjson: 'application/x-ndjson', csv: 'text/csv; charset=utf-8' }

export function exportRoutes({ db, drain, log, findPrompt, heavyReads }: Services, { authenticated }: RouteWrapper) {
  // An export takes as long as its caller, so nobody waits for another's to end.
  const limitExports = createSemaphore({ permits: 16, permitsPerTenant: 2, maxWaiting: 0, rejectWith: tooMany })

  /** Resolves with what releases the permit. */
  const takeSlot = (organisationId: number): Promise<() => void> =>
    new Promise((resolve, reject) => {
      limitExports(() => new Promise<void>(resolve), { tenant: organisationId }).catch(reject)
    })

  async function answer(context: RequestContext, source: ExportSource, name: string): Promise<Response> {
    // Loaded with the first export, because many services never make one.
    const { exportSignals } = await import('./export.ts')
    const query = exportParams.parse(searchOf(context.request))
    const release = await takeSlot(source.organisationId)
    const onEnd = (error?: unknown) => {
      release()
      if (error) log.error({ err: error, request_id: context.requestId }, 'an export was cut')
    }
    try {
      const steps = exportSignals(db, source, query, (step) => heavyReads(source.organisationId, step))
      return await replyStream(context, textsOf(steps, context), {
        type: types[query.format],
        fileName: `${name}.${query.format}`,
        isStopping: () => drain.isDraining,
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
      authenticated('signals:read', async (context, { prompt_id }: PromptParams, { organisationId }) => {
        const { id } = await findPrompt(organisationId, prompt_id)
        return answer(context, { organisationId, prompt: { id, publicId: prompt_id } }, `signals-${prompt_id}`)
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

/** An export may last for hours, and ends with the key that it was begun with. */
async function* textsOf(steps: AsyncIterable<ExportStep>, { verifyAgain }: RequestContext): AsyncGenerator<string> {
  for await (const { text } of steps) {
    await verifyAgain?.()
    yield text
  }
}

const tooMany = () =>
  unavailable('Two exports of the organisation are under way, or too many in all. Try again when one has ended.', 10)
