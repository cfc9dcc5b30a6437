import { compare } from '../compare.ts'
import type { Ground } from '../ground.ts'
import { measure } from '../phase.ts'

/** Two replicas must not be slower than one, though they wait for the same rows and share the same cores. */
export async function measureReplicas(ground: Ground): Promise<void> {
  const [first, second] = [await ground.serve(), await ground.serve()]
  const one = { name: 'POST signals, one replica, 256 connections', servers: [first], connections: 256 }
  const two = {
    name: 'POST signals, two replicas, 128 connections each',
    servers: [first, second],
    connections: 128,
  }
  const ratio = await compare(ground, {
    one: (turn) => measure(ground, one, turn),
    two: (turn) => measure(ground, two, turn),
  })
  await Promise.all([first.stop(), second.stop()])
  ground.report.targets.push({ name: 'two replicas ÷ one replica', value: ratio('two', 'one'), atLeast: 1 })
}
