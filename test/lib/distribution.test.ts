import { expect, test } from 'bun:test'
import { Distribution } from '../../src/lib/distribution.ts'

test('each kind has its own sum and count, and buckets that hold all up to and including their end', () => {
  const distribution = new Distribution([0.1, 1])
  for (const seconds of [0.1, 0.5, 3]) distribution.add('a', seconds, () => ({ name: 'a' }))
  distribution.add('b', 2, () => ({ name: 'b' }))
  expect(distribution.samples()).toEqual([
    { figure: 'bucket', labels: { name: 'a', le: 0.1 }, value: 1 },
    { figure: 'bucket', labels: { name: 'a', le: 1 }, value: 2 },
    { figure: 'bucket', labels: { name: 'a', le: '+Inf' }, value: 3 },
    { figure: 'sum', labels: { name: 'a' }, value: 3.6 },
    { figure: 'count', labels: { name: 'a' }, value: 3 },
    { figure: 'bucket', labels: { name: 'b', le: 0.1 }, value: 0 },
    { figure: 'bucket', labels: { name: 'b', le: 1 }, value: 0 },
    { figure: 'bucket', labels: { name: 'b', le: '+Inf' }, value: 1 },
    { figure: 'sum', labels: { name: 'b' }, value: 2 },
    { figure: 'count', labels: { name: 'b' }, value: 1 },
  ])
})
