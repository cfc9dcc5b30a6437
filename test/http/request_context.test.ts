import { expect, test } from 'bun:test'
import { parseTraceId, RequestContext } from '../../src/http/request_context.ts'

const trace = '4bf92f3577b34da6a3ce929d0e0e4736'
const parent = '00f067aa0ba902b7'

test.each([
  [`00-${trace}-${parent}-01`, trace],
  [`cc-${trace}-${parent}-01`, trace],
  [`cc-${trace}-${parent}-01-what-the-future-will-be-like`, trace],
  [`00-${trace}-${parent}-01-more`, undefined],
  [`ff-${trace}-${parent}-01`, undefined],
  [`00-${'0'.repeat(32)}-${parent}-01`, undefined],
  [`00-${trace}-${'0'.repeat(16)}-01`, undefined],
  [`00-${trace.toUpperCase()}-${parent}-01`, undefined],
  [`00-${trace}-${parent}`, undefined],
  [`cc-${trace}-${parent}-01.more`, undefined],
  ['', undefined],
  [null, undefined],
])('the trace id of %p is %p', (traceparent, id) => {
  expect(parseTraceId(traceparent)).toBe(id as never)
})

test.each([
  [{ 'x-request-id': 'mine', traceparent: `00-${trace}-${parent}-01` }, 'mine'],
  [{ 'x-request-id': 'not well-formed', traceparent: `00-${trace}-${parent}-01` }, trace],
  [{ traceparent: `00-${trace}-${parent}-01` }, trace],
])('of %p the request id is %s, and the trace id is kept', (headers, id) => {
  const request = new Request('http://localhost', { headers })
  expect(new RequestContext(request)).toMatchObject({ requestId: id, traceId: trace })
})

test('without either the request gets an id of its own', () => {
  const [one, other] = [
    new RequestContext(new Request('http://localhost')),
    new RequestContext(new Request('http://localhost')),
  ]
  expect(one.requestId).toMatch(/^[0-9a-f-]{36}$/)
  expect(one.requestId).not.toBe(other.requestId)
})
