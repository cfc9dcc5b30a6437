import { expect, test } from 'bun:test'
import { readableLine } from '../../src/log.ts'

const time = '2026-11-14T23:35:07.123Z'

test.each([
  [
    { level: 30, time, method: 'GET', route: '/api/v1/*', status: 404, ms: 1.25, request_id: 'r-1', msg: 'request' },
    '23:35:07 INFO  GET /api/v1/* 404 1.25 ms r-1\n',
  ],
  [
    { level: 40, time, dependency: 'redis', reason: 'gone', msg: 'dependency down' },
    '23:35:07 WARN  dependency down dependency=redis reason=gone\n',
  ],
  [
    { level: 50, time, err: { type: 'Error', message: 'no', stack: 'Error: no\n at x' }, msg: 'request failed' },
    '23:35:07 ERROR request failed err=no\n',
  ],
  [{ level: 30, time, seconds: 3, msg: 'a\u001b[2J\nb' }, '23:35:07 INFO  a [2J b seconds=3\n'],
])('%j is short, on one line and harmless on a terminal', (line, shown) => {
  expect(readableLine(JSON.stringify(line))).toBe(shown)
})
