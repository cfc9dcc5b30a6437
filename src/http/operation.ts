import type { Static, TObject, TSchema } from '@sinclair/typebox'
import type { ErrorCode, statusOfCode } from '../errors.ts'
import type { Actor, Caller } from '../keys/caller.ts'
import type { CursorPage } from '../lib/cursor_page.ts'
import { parseJson } from '../lib/json.ts'
import { type Params, requireId } from '../lib/params.ts'
import type { Scope } from '../lib/scopes.ts'
import type { JsonBody } from '../lib/validate.ts'
import { readJsonText } from './body.ts'
import type { DescribedError } from './describe_errors.ts'
import type { HeaderName } from './describe_headers.ts'
import { replyPage } from './paging.ts'
import type { RequestContext } from './request_context.ts'

export type ErrorStatus = (typeof statusOfCode)[ErrorCode]

/** What a successful call answers. */
export type Answer = {
  status: number
  description: string
  headers?: HeaderName[]
  sometimes?: HeaderName[]
  /** Another success, of the same shape. */
  alternative?: { status: number; description: string }
  /** What `run` returns: the value of `data` by default, a page with a cursor, or the whole body. */
  shape?: 'page' | 'body'
} & ({ schema: TSchema } | { texts: Record<string, string> })

/** How agents call the operation. */
export type Tool = {
  name: string
  description: string
  /** The parameters that it has beside those of the path; all fields of a body. */
  takes?: string[]
  required?: string[]
  /** Parameters that are not those of the operation. */
  more?: Record<string, object>
}

type FoundPrompt = { id: number; organisationId: number; publicId: string }

/** What surrounds every operation with a prompt in its path. */
type PromptFinder = { findPrompt(organisationId: number, id: string): FoundPrompt | Promise<FoundPrompt> }

export type Input<Path, Query, Body> = {
  params: Path
  prompt: Path extends { prompt_id: string } ? FoundPrompt : undefined
  query: Query
  body: Body
  caller: Caller
  /** The caller as the audit log names it, with the deadline of the request. */
  actor: Actor
  context: RequestContext
  /** Headers to send with the answer. */
  headers: Record<string, string>
}

type Words = {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Below /api/v1. */
  path: string
  /** Null accepts any key: for its own data. */
  scope: Scope | null
  scopeFor?(query: URLSearchParams): Scope
  summary: string
  description: string
  answer: Answer
  /** Errors that do not follow from the rest. Every operation has 401, 403, 429, 500 and 503; a path adds 404, a query or a body 422. */
  errors?: ErrorStatus[]
  /** What its 422 says, unless it follows from the query or the body. */
  invalid?: Partial<DescribedError>
  isIdempotent?: boolean
  /** Whether it answers 304 to a client that has the current version. */
  unchanged?: boolean
  tool?: Tool
}

type Run<Needs, Path, Query, Body> = {
  /** Rejects what does not exist, before the body is read. */
  find?(needs: Needs, input: Pick<Input<Path, Query, Body>, 'params' | 'caller'>): Promise<unknown>
  run(needs: Needs, input: Input<Path, Query, Body>): unknown
}

/** For hot paths and streams, which parse and answer themselves. */
type Reply<Needs, Path> = {
  reply(needs: Needs, context: RequestContext, params: Path, caller: Caller): Promise<Response>
}

type Definition<Needs, P extends TObject, Query, Body> = Words & {
  params?: P
  query?: Params<Query>
  body?: JsonBody<Body>
} & (Run<Needs, Static<P>, Query, Body> | Reply<Needs, Static<P>>)

type Handle<Needs> = (
  needs: Needs & PromptFinder,
  context: RequestContext,
  params: Record<string, string>,
  caller: Caller,
) => Promise<Response>

type Defined<Needs> = Words & {
  params?: TObject
  query?: Params<unknown>
  body?: JsonBody<unknown>
  handle: Handle<Needs>
}

/** One definition of what a client can ask for. The routes, the OpenAPI document, tools and commands are made from it. */
export type Operation<Needs> = Defined<Needs> & { id: string; tag: string }

export function operation<Needs, Query, Body, P extends TObject = TObject>(
  definition: Definition<Needs, P, Query, Body>,
): Defined<Needs> {
  if ('reply' in definition) {
    const { reply, ...words } = definition
    return { ...words, handle: (needs, context, params, caller) => reply(needs, context, params as Static<P>, caller) }
  }
  const { find, run, ...words } = definition
  const { params: path, query, body, answer } = words
  const { status, shape } = answer
  return {
    ...words,
    /** Checks in the promised order: what the path names (404), the query and the body (422). */
    async handle(needs, context, given, caller) {
      const { prompt_id } = given
      const prompt = prompt_id === undefined ? undefined : await needs.findPrompt(caller.organisationId, prompt_id)
      const params = (path ? parsePath(path, given) : {}) as Static<P>
      await find?.(needs, { params, caller })
      const headers: Record<string, string> = {}
      const result = await run(needs, {
        params,
        prompt,
        query: query?.parse(context.searchParams),
        body: body ? body.parse(parseJson(await readJsonText(context))) : undefined,
        caller,
        actor: actorOf(caller, context),
        context,
        headers,
      } as Input<Static<P>, Query, Body>)
      if (shape === 'page') {
        return replyPage(context, fillPath(words.path, given), result as CursorPage<unknown>)
      }
      if (shape === 'body') {
        return context.reply(status, typeof result === 'string' ? result : JSON.stringify(result), headers)
      }
      return context.replyData(result, status, headers)
    },
  }
}

export const defineOperations = <Needs>(tag: string, operations: Record<string, Defined<Needs>>): Operation<Needs>[] =>
  Object.entries(operations).map(([id, one]) => ({ ...one, id, tag }))

const actorOf = ({ key: name, organisationId, scopes, expiresAt }: Caller, request: RequestContext): Actor => ({
  name,
  organisationId,
  scopes,
  expiresAt,
  request,
})

/** Ids that are numbers are parsed. What is no id is not found. */
const parsePath = ({ properties }: TObject, given: Record<string, string>): object =>
  Object.fromEntries(
    Object.entries(given).map(([name, text]) => [name, properties[name]?.type === 'integer' ? requireId(text) : text]),
  )

/** The path of a request. */
const fillPath = (path: string, params: Record<string, string>): string =>
  `/api/v1${path.replace(/:(\w+)/g, (_, name: string) => encodeURIComponent(params[name] ?? ''))}`
