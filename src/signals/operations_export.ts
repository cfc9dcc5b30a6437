import type { Db } from '../db/client.ts'
import type { Drain } from '../http/drain.ts'
import { defineOperations, operation } from '../http/operation.ts'
import type { RequestContext } from '../http/request_context.ts'
import { replyStream } from '../http/stream.ts'
import type { Limiter } from '../lib/concurrency.ts'
import type { Log } from '../log.ts'
import type { Prompt } from '../prompts/find.ts'
import { PromptPath } from '../prompts/schema.ts'
import { type ExportStep, exportSignals, type SignalSource } from './read.ts'
import { exportExamples } from './schema.ts'
import { type ExportQuery, exportParams } from './schema_params.ts'

type Needs = {
  db: Db
  log: Log
  drain: Drain
  findPrompt(organisationId: number, id: string): Prompt | Promise<Prompt>
  limitLong: Limiter
}

const aboutExports =
  'Ordered by time, as lines of JSON or as CSV, gzipped if the client accepts it. A response that was cut off is resumed ' +
  'with `after`. Signals recorded during the export may or may not be included.'

const exported = { status: 200, description: 'The signals.', texts: exportExamples }

export const exportOperations = defineOperations('Signals', {
  exportSignals: operation({
    method: 'GET',
    path: '/prompts/:prompt_id/signals/export',
    scope: 'signals:read',
    summary: 'Export the signals of a prompt',
    description: `Exports all signals of a prompt. ${aboutExports}`,
    params: PromptPath,
    query: exportParams,
    answer: exported,
    async reply(needs: Needs, context, { prompt_id }, { organisationId }) {
      const prompt = await needs.findPrompt(organisationId, prompt_id)
      return replyExport(needs, context, { organisationId, prompt }, `signals-${prompt_id}`)
    },
  }),
  exportAllSignals: operation({
    method: 'GET',
    path: '/signals/export',
    scope: 'signals:read',
    summary: 'Export all signals',
    description: `Exports all signals of the organisation, prompt by prompt. ${aboutExports}`,
    query: exportParams,
    answer: exported,
    reply: (needs: Needs, context, _, { organisationId }) =>
      replyExport(needs, context, { organisationId, prompt: null }, 'signals'),
  }),
})

const types: Record<ExportQuery['format'], string> = { ndjson: 'application/x-ndjson', csv: 'text/csv; charset=utf-8' }

async function replyExport(
  { db, log, drain, limitLong }: Needs,
  context: RequestContext,
  source: SignalSource,
  name: string,
): Promise<Response> {
  const query = exportParams.parse(context.searchParams)
  const release = await limitLong.acquire({ tenant: source.organisationId })
  try {
    return await replyStream(context, textsOf(exportSignals(db, source, query), context), {
      type: types[query.format],
      fileName: `${name}.${query.format}`,
      isStopping: () => drain.isDrained,
      onEnd(error?: unknown) {
        release()
        if (error) log.error({ err: error, request_id: context.requestId }, 'export aborted')
      },
    })
  } catch (error) {
    release()
    throw error
  }
}

/** Aborts the export when its key is revoked, because it may last for hours. */
async function* textsOf(steps: AsyncIterable<ExportStep>, { verifyAgain }: RequestContext): AsyncGenerator<string> {
  for await (const { text } of steps) {
    await verifyAgain?.()
    yield text
  }
}
