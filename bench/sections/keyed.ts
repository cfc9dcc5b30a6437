import { compare } from '../compare.ts'
import type { Context } from '../context.ts'
import { unique } from '../load.ts'
import { measure } from '../measure.ts'

/**
 * Signals with an Idempotency-Key. Without autovacuum on the keys, nothing but the statement itself keeps a plan that
 * was made while the table was empty from reading all of it.
 */
export async function measureKeyed(context: Context): Promise<void> {
  await context.database.sql.script('alter table idempotency_keys set (autovacuum_enabled = off)')
  const server = await context.serve()
  const at64 = { servers: [server], connections: 64 }
  const plain = context.requests
  const everyTenth = plain.map((request, index) =>
    index % 10 === 0 ? { ...request, idempotencyKey: unique } : request,
  )
  const all = plain.map((request) => ({ ...request, idempotencyKey: unique }))
  const ratio = await compare(context, {
    plain: (round) => measure(context, { name: 'POST signals without keys, 64 connections', ...at64 }, round),
    everyTenth: (round) =>
      measure(
        context,
        { name: 'POST signals, every tenth keyed, 64 connections', ...at64, requests: everyTenth },
        round,
      ),
    all: (round) =>
      measure(context, { name: 'POST signals, all keyed, 64 connections', ...at64, requests: all }, round),
  })
  await server.stop()
  await context.database.sql.script('alter table idempotency_keys reset (autovacuum_enabled)')
  context.report.targets.push(
    { name: 'every tenth signal keyed ÷ none keyed', value: ratio('everyTenth', 'plain'), atLeast: 0.85 },
    { name: 'all signals keyed ÷ none keyed', value: ratio('all', 'plain'), atLeast: 0.7 },
  )
}
