import { expect, test } from 'bun:test'
import { Histogram } from '../../src/ops/histogram.ts'

test('each kind has its own sum and count, and buckets that hold all up to and including their end', () => {
  const distribution = new Histogram([0.1, 1])
  for (const seconds of [0.1, 0.5, 3]) distribution.observe('a', seconds, () => ({ name: 'a' }))
  distribution.observe('b', 2, () => ({ name: 'b' }))
  expect(distribution.samples()).toEqual([
    { suffix: 'bucket', labels: { name: 'a', le: 0.1 }, value: 1 },
    { suffix: 'bucket', labels: { name: 'a', le: 1 }, value: 2 },
    { suffix: 'bucket', labels: { name: 'a', le: '+Inf' }, value: 3 },
    { suffix: 'sum', labels: { name: 'a' }, value: 3.6 },
    { suffix: 'count', labels: { name: 'a' }, value: 3 },
    { suffix: 'bucket', labels: { name: 'b', le: 0.1 }, value: 0 },
    { suffix: 'bucket', labels: { name: 'b', le: 1 }, value: 0 },
    { suffix: 'bucket', labels: { name: 'b', le: '+Inf' }, value: 1 },
    { suffix: 'sum', labels: { name: 'b' }, value: 2 },
    { suffix: 'count', labels: { name: 'b' }, value: 1 },
  ])
})
