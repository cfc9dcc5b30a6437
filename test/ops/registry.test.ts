import { expect, test } from 'bun:test'
import { createRegistry } from '../../src/ops/registry.ts'

test('a histogram has a sum, a count and cumulative buckets for each series', () => {
  const { histogram, text } = createRegistry('test_')
  const durations = histogram('seconds', 'Durations', [0.1, 1])
  for (const seconds of [0.1, 0.5, 3]) durations.observe('a', seconds, () => ({ name: 'a' }))
  durations.observe('b', 2, () => ({ name: 'b' }))
  expect(text().split('\n')).toEqual([
    '# HELP test_seconds Durations',
    '# TYPE test_seconds histogram',
    'test_seconds_bucket{name="a",le="0.1"} 1',
    'test_seconds_bucket{name="a",le="1"} 2',
    'test_seconds_bucket{name="a",le="+Inf"} 3',
    'test_seconds_sum{name="a"} 3.6',
    'test_seconds_count{name="a"} 3',
    'test_seconds_bucket{name="b",le="0.1"} 0',
    'test_seconds_bucket{name="b",le="1"} 0',
    'test_seconds_bucket{name="b",le="+Inf"} 1',
    'test_seconds_sum{name="b"} 2',
    'test_seconds_count{name="b"} 1',
  ])
})

test('counters and gauges are exposed from the start, with their labels escaped', () => {
  const { counter, gauge, labelledCounter, measure, text } = createRegistry('')
  counter('events_total', 'Events')()
  gauge('level', 'Level')(3)
  labelledCounter('kinds_total', 'Kinds', 'kind', ['a', 'b'])('b')
  measure('gauge', 'info', 'Info', () => [[{ says: 'a "\\" b' }, 1]])
  const samples = text()
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
  expect(samples).toEqual([
    'events_total 1',
    'level 3',
    'kinds_total{kind="a"} 0',
    'kinds_total{kind="b"} 1',
    'info{says="a \\"\\\\\\" b"} 1',
  ])
})
