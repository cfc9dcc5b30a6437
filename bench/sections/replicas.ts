import { compare } from '../compare.ts'
import type { Context } from '../context.ts'
import { measure } from '../measure.ts'

/** Two replicas must not be slower than one, though they wait for the same rows and share the same cores. */
export async function measureReplicas(context: Context): Promise<void> {
  const [first, second] = [await context.serve(), await context.serve()]
  const one = { name: 'POST signals, one replica, 256 connections', servers: [first], connections: 256 }
  const two = {
    name: 'POST signals, two replicas, 128 connections each',
    servers: [first, second],
    connections: 128,
  }
  const ratio = await compare(context, {
    one: (round) => measure(context, one, round),
    two: (round) => measure(context, two, round),
  })
  await Promise.all([first.stop(), second.stop()])
  context.report.targets.push({ name: 'two replicas ÷ one replica', value: ratio('two', 'one'), atLeast: 1 })
}
