// What becomes known of a request on its way, for its line in the log and its place in the metrics.
import { randomUUID } from 'node:crypto'

export type Notes = {
  /** The caller's own X-Request-Id, else the id of the caller's trace, else a new one. */
  requestId: string
  traceId: string | undefined
  /** The template of the route; "other" for a request that no route took. */
  route: string
  caller: { org: string; key: string } | undefined
}

const wellFormedId = /^[0-9A-Za-z._-]{1,128}$/
/** W3C Trace Context. Version 00 ends after the flags; a later one may go on, and is read as far as it is known. */
const wellFormedTrace = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?$/

/** On the request itself: a WeakMap from requests costs the garbage collector more than the rest of this file. */
const kept = Symbol('notes')
type Noted = Request & { [kept]?: Notes }

export function notesOf(request: Noted): Notes {
  const known = request[kept]
  if (known) return known
  const given = request.headers.get('x-request-id') ?? ''
  const traceId = readTraceId(request.headers.get('traceparent'))
  const requestId = wellFormedId.test(given) ? given : (traceId ?? randomUUID())
  const notes: Notes = { requestId, traceId, route: 'other', caller: undefined }
  request[kept] = notes
  return notes
}

export function readTraceId(traceparent: string | null): string | undefined {
  const [, version, traceId, parentId, more] = wellFormedTrace.exec(traceparent ?? '') ?? []
  if (!traceId || version === 'ff' || (version === '00' && more)) return undefined
  return /^0+$/.test(traceId) || /^0+$/.test(parentId as string) ? undefined : traceId
}
