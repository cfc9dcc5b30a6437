import type { Ground } from '../ground.ts'
import { measure } from '../phase.ts'

/** Two replicas must not be slower than one, though they wait for the same rows and share the same cores. */
export async function measureReplicas(ground: Ground): Promise<void> {
  const [first, second] = [await ground.serve(), await ground.serve()]
  const one = await measure(ground, {
    name: 'POST signals, one replica, 256 connections',
    servers: [first],
    connections: 256,
  })
  const two = await measure(ground, {
    name: 'POST signals, two replicas, 128 connections each',
    servers: [first, second],
    connections: 128,
  })
  await Promise.all([first.stop(), second.stop()])
  ground.report.targets.push({
    name: 'two replicas ÷ one replica',
    value: two.requestsPerSecond / one.requestsPerSecond,
    atLeast: 1,
  })
}
