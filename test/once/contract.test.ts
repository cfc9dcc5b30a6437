import { expect, test } from 'bun:test'
import { createContract } from '../contract.ts'

const header = (schema: object) => ({ required: true, schema })
const json = (properties: object, headers: object = {}) => ({
  description: '',
  headers: { 'X-Request-Id': header({ type: 'string' }), ...headers },
  content: { 'application/json': { schema: { type: 'object', required: Object.keys(properties), properties } } },
})
const rejection = json({ error: { type: 'object', required: ['code'], properties: { code: { enum: ['not_found'] } } } })
const page = json({ at: { type: 'string', format: 'date-time' }, by: { type: 'integer', nullable: true } })

const contract = createContract({
  paths: {
    '/things/{id}/pages': { get: { responses: { 200: page, 404: rejection } } },
    '/things': {
      post: {
        responses: { 201: json({}, { 'Retry-After': header({ type: 'integer' }) }), 404: rejection, 422: rejection },
      },
    },
  },
})

const goodHeaders = { 'content-type': 'application/json;charset=utf-8', 'x-request-id': 'r' }
const goodPage = { at: '2026-11-14T23:35:00.000Z', by: null }
const notFound = { error: { code: 'not_found' } }

function verdict(method: string, url: string, status: number, body: unknown, headers: object = goodHeaders): string {
  try {
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    contract.check(method, url, status, new Headers({ ...headers }), text)
    return 'kept'
  } catch (error) {
    return (error as Error).message.split('\n')[0] ?? ''
  }
}

test.each([
  ['GET', '/things/1/pages', 200, goodPage],
  ['GET', 'http://127.0.0.1:3000/things/%ff/pages/?page=2', 200, goodPage],
  ['GET', '/things/1/pages', 200, `{"at":"2026-11-14T23:35:00.000Z","by":1${'0'.repeat(400)}}`],
  ['HEAD', '/things/1/pages', 200, ''],
  ['GET', '/elsewhere', 404, notFound],
  ['DELETE', '/things', 404, notFound],
  ['GET', '/readyz', 503, 'anything'],
])('takes what the document promises: %s %s %d', (method, url, status, body) => {
  expect(verdict(method, url, status, body)).toBe('kept')
})

test.each([
  ['GET', '/things/1/pages', 500, notFound, 'status 500 is not one of 200, 404'],
  ['GET', '/things/1/pages', 200, { ...goodPage, more: 1 }, 'additional properties {"additionalProperty":"more"}'],
  ['GET', '/things/1/pages', 200, { ...goodPage, at: 'yesterday' }, '/at must match format "date-time"'],
  ['GET', '/things/1/pages', 200, { ...goodPage, by: '7' }, '/by must be integer'],
  ['GET', '/things/1/pages', 200, { at: goodPage.at }, "must have required property 'by'"],
  ['GET', '/things/1/pages', 200, 'not JSON', 'the body is not JSON'],
  ['GET', '/things/1/pages', 404, { error: { code: 'other' } }, '/error/code must be equal to one of'],
  ['POST', '/things', 201, {}, "headers  must have required property 'retry-after'"],
  ['GET', '/elsewhere', 200, {}, 'status 200 is not one of 404'],
  ['GET', '/elsewhere', 422, notFound, 'status 422 is not one of 404'],
  ['GET', '/elsewhere', 404, 'Not Found', 'the body is not JSON'],
  ['GET', '/docs/elsewhere', 404, { error: 1 }, '/error must be object'],
])('rejects what it does not: %s %s %d %j', (method, url, status, body, why) => {
  expect(verdict(method, url, status, body)).toContain(why)
})

test('reads headers as the types they have, and wants a documented content type', () => {
  const created = (more: object) => verdict('POST', '/things', 201, {}, { ...goodHeaders, ...more })
  expect(created({ 'retry-after': '12' })).toBe('kept')
  expect(created({ 'retry-after': 'soon' })).toContain('/retry-after must be integer')
  expect(created({ 'content-type': 'text/plain' })).toContain('content type text/plain is not one of application/json')
})
