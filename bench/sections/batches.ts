import { compare } from '../compare.ts'
import type { Context } from '../context.ts'
import type { Request } from '../load.ts'
import { measure } from '../measure.ts'

const perBatch = 1_000

/** Signals in batches of 1,000, beside single ones. */
export async function measureBatches(context: Context): Promise<void> {
  const server = await context.serve()
  const requests = context.requests.map(toBatch)
  const ratio = await compare(context, {
    batches: (round) =>
      measure(
        context,
        {
          name: 'POST batches of 1,000 signals, 8 connections',
          servers: [server],
          connections: 8,
          requests,
          status: 200,
          rowsEach: perBatch,
        },
        round,
      ),
    singles: (round) =>
      measure(context, { name: 'POST signals, 256 connections', servers: [server], connections: 256 }, round),
  })
  await server.stop()
  context.report.targets.push({
    name: 'signals a second in batches of 1,000 ÷ single ones at 256',
    value: perBatch * ratio('batches', 'singles'),
    atLeast: 4,
  })
}

const toBatch = ({ path, body, ...request }: Request): Request => ({
  ...request,
  path: `${path}/batch`,
  body: `{"signals":[${Array(perBatch).fill(body).join()}]}`,
})
