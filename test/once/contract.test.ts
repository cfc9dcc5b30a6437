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

const good = { 'content-type': 'application/json;charset=utf-8', 'x-request-id': 'r' }
const goodPage = { at: '2026-11-14T23:35:00.000Z', by: null }
const notFound = { error: { code: 'not_found' } }
const pages = 'GET /things/1/pages'
const unknown = 'GET /elsewhere'

test.each([
  [pages, 200, goodPage, good, ''],
  ['GET http://127.0.0.1:3000/things/%ff/pages/?page=2', 200, goodPage, good, ''],
  ['HEAD /things/1/pages', 200, '', good, ''],
  [unknown, 404, notFound, good, ''],
  ['DELETE /things', 404, notFound, good, ''],
  ['GET /readyz', 503, 'anything', good, ''],
  [pages, 500, notFound, good, 'status 500 is not one of 200, 404'],
  [pages, 200, { ...goodPage, more: 1 }, good, 'additional properties {"additionalProperty":"more"}'],
  [pages, 200, { ...goodPage, at: 'yesterday' }, good, '/at must match format "date-time"'],
  [pages, 200, { ...goodPage, by: '7' }, good, '/by must be integer'],
  [pages, 200, { at: goodPage.at }, good, "must have required property 'by'"],
  [pages, 200, 'not JSON', good, 'the body is not JSON'],
  [pages, 404, { error: { code: 'other' } }, good, '/error/code must be equal to one of'],
  [unknown, 422, notFound, good, 'status 422 is not one of 404'],
  ['GET /docs/elsewhere', 404, { error: 1 }, good, '/error must be object'],
  ['POST /things', 201, {}, { ...good, 'retry-after': '12' }, ''],
  ['POST /things', 201, {}, good, "headers  must have required property 'retry-after'"],
  ['POST /things', 201, {}, { ...good, 'retry-after': 'soon' }, '/retry-after must be integer'],
  ['POST /things', 201, {}, { ...good, 'content-type': 'text/plain' }, 'content type text/plain is not one of'],
])('%s %d %j %j breaks: %p', (request, status, body, headers, problem) => {
  const [method = '', url = ''] = request.split(' ')
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  const check = () => contract.check(method, url, status, new Headers(headers), text)
  if (problem) expect(check).toThrow(problem)
  else check()
})
