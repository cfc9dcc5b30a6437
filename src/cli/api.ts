// How commands call operations: in this process on the configured database, or those of a service over REST.
import { operator } from '../audit/record.ts'
import type { Services } from '../deps.ts'
import { notFound, ServiceError } from '../errors.ts'
import type { Operation } from '../http/operation.ts'
import { RequestContext } from '../http/request_context.ts'
import type { Caller } from '../keys/caller.ts'
import { requireKey } from '../keys/manage.ts'
import { type Call, openRest, parseAnswer } from '../lib/rest.ts'
import { presets } from '../lib/scopes.ts'
import type { Log } from '../log.ts'
import { type Owner, readOrganisation, requireOrganisation } from '../orgs/manage.ts'
import { isPromptId, requirePrompt } from '../prompts/find.ts'
import { requireEndpoint } from '../webhooks/endpoints.ts'
import { type Arguments, type Context, UsageError } from './command.ts'
import { type DatabaseContext, withDatabase } from './database.ts'

/** Those that a command may call, if they are known: loading all of them takes a third of its start. */
export type Operations = Operation<Services>[]

/** A command shows its failures itself. Loading the library of the log would take a tenth of its start. */
const silent: Log = { fatal() {}, error() {}, warn() {}, info() {}, debug() {}, request() {}, close: async () => {} }

/** Calls the operations of an organisation in this process, as an operator. What one throws is thrown. */
export async function openLocal(
  { db, clock, config }: DatabaseContext,
  owner: Owner,
  known?: Operations,
): Promise<Call> {
  const { createServices } = await import('../deps.ts')
  const operations = known ?? (await import('../operations.ts')).operations
  const services = createServices({ db, clock, log: silent, isServing: false }, config)
  // The audit log names the operator `cli`.
  const caller: Caller = { ...owner, id: 0, key: 'cli', scopes: presets.admin, expiresAt: null, browser: null }
  return async (method, path, body) => {
    const url = new URL(path, 'http://localhost')
    for (const operation of operations) {
      if (operation.method !== method) continue
      const found = new URLPattern({ pathname: operation.path }).exec({ pathname: url.pathname })
      if (!found) continue
      const params = Object.entries(found.pathname.groups).map(([name, text = '']) => [name, decodeURIComponent(text)])
      const headers = { 'content-type': 'application/json' }
      const request = new Request(url.href, {
        method,
        headers,
        ...(body !== undefined && { body: JSON.stringify(body) }),
      })
      const context = new RequestContext(request)
      // An operator waits for the result.
      context.deadline = Number.POSITIVE_INFINITY
      return parseAnswer(await operation.handle(services, context, Object.fromEntries(params), caller))
    }
    throw notFound()
  }
}

/** Works with the service that --url names, or with the database and the organisation of what the arguments name. */
export async function withApi(
  context: Context,
  preset: 'admin' | 'ci' | 'reader',
  work: (context: Context, call: Call) => Promise<void>,
  { url = context.args.text('url'), known }: { url?: string | null; known?: Operations } = {},
): Promise<void> {
  const { args, config, interruption } = context
  if (url === null) {
    return withDatabase(context, async (opened) => {
      await work(opened, await openLocal(opened, await findOwner(opened), known))
    })
  }
  const prompt = promptOf(args)
  if (prompt !== null && !isPromptId(prompt)) throw new UsageError('PROMPT must be an id (pmt_…) with --url')
  const key = config.PROMPT_SIGNALS_KEY
  if (key === undefined) throw new Error(`Set PROMPT_SIGNALS_KEY to an API key of the service (preset ${preset}).`)
  await work(context, openRest(url, key, interruption.signal))
}

/** The organisation that is named, or that has the prompt, the endpoint or the key that is named. */
async function findOwner({ db, clock, args }: DatabaseContext): Promise<Owner> {
  const [org, prompt, endpoint] = [args.text('org'), promptOf(args), args.place('ENDPOINT')]
  if (prompt !== null) {
    const owner = await requirePrompt(db.sql, prompt)
    if (org === null || org === owner.org) return owner
    throw new ServiceError('not_found', `There is no prompt ${prompt} in ${org}.`)
  }
  if (org !== null) return requireOrganisation(db, org)
  if (endpoint === null) return requireKey(db.sql, args.place('ID') ?? '', operator)
  const { organisationId } = await requireEndpoint(db.sql, endpoint, operator)
  return { organisationId, org: (await readOrganisation(db, clock, organisationId)).id }
}

const promptOf = (args: Arguments): string | null => args.text('prompt') ?? args.place('PROMPT')

export function checkService(args: Arguments): void {
  const [org, url] = [args.text('org'), args.text('url')]
  if (url !== null && !/^https?:\/\/[^/]/.test(url)) throw new UsageError('--url must begin with http:// or https://')
  if (url !== null && org !== null) throw new UsageError('give either --org or --url')
  const isAsked = args.grammar.options.some(({ name, isRequired }) => name === 'org' && !isRequired)
  if (isAsked && url === null && org === null && promptOf(args) === null) {
    const orPrompt = args.grammar.options.some(({ name, multiple }) => name === 'prompt' && !multiple)
    throw new UsageError(orPrompt ? 'give --org, --url or --prompt' : 'give either --org or --url')
  }
}
