import { randomUUID } from 'node:crypto'
import { Elysia } from 'elysia'
import { notFound, ServiceError, statusOfCode, unavailable } from '../errors.ts'
import type { Log } from '../log.ts'
import { notesOf } from './notes.ts'

/** Gives every request an id, and every error the one shape that callers know. */
export const envelope = (log: Log) =>
  new Elysia({ name: 'envelope' })
    .onRequest(({ request, set }) => {
      set.headers['x-request-id'] = notesOf(request).requestId
    })
    .onTransform({ as: 'global' }, ({ request, route }) => {
      notesOf(request).route = route
    })
    .onError({ as: 'global' }, ({ error, code, request, set }) => {
      const shown = code === 'NOT_FOUND' ? notFound() : error instanceof ServiceError ? error : unavailable()
      const requestId = set.headers['x-request-id']
      if (shown !== error && shown.code === 'internal_error') {
        log.error({ err: error, method: request.method, request_id: requestId }, 'a request failed')
      }
      set.status = statusOfCode[shown.code]
      Object.assign(set.headers, shown.headers)
      return { error: { code: shown.code, message: shown.message, ...shown.context, request_id: requestId } }
    })

/** The answer when even the error handling of the framework fails, as it does when nothing at all is thrown. */
export function crashResponse(requestId: string = randomUUID()): Response {
  const { code, message, headers } = unavailable()
  return Response.json(
    { error: { code, message, request_id: requestId } },
    { status: statusOfCode[code], headers: { ...headers, 'x-request-id': requestId } },
  )
}
