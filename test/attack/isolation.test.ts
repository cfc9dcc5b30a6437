import { beforeAll, expect, test } from 'bun:test'
import fc from 'fast-check'
import { createApp } from '../../src/app.ts'
import { operator } from '../../src/audit/record.ts'
import { setWebhook } from '../../src/github/settings.ts'
import { recordEntry } from '../../src/history/record.ts'
import { type Scope, scopes } from '../../src/lib/scopes.ts'
import { createOrganisation, requireOrganisation } from '../../src/orgs/manage.ts'
import { requirePrompt } from '../../src/prompts/find.ts'
import { createEndpoint } from '../../src/webhooks/endpoints.ts'
import { emitEvent } from '../../src/webhooks/events.ts'
import type { Answer } from '../client.ts'
import { inFullRun } from '../full.ts'
import { useOwnService } from '../use.ts'

const requests = inFullRun(1_500, 500)
const seed = Number(process.env.TEST_SEED ?? Date.now() % 2 ** 31)

type Side = 'alpha' | 'bravo'

/** What is known of an organisation. Every text that it sends holds its tag, and what the service makes is collected. */
type Organisation = {
  tag: Side
  org: string
  prompts: string[]
  keyIds: string[]
  endpoints: string[]
  events: string[]
  /** The ids of signals, and of whatever else has a number. */
  numbers: string[]
  cursors: string[]
  etags: string[]
  /** Texts by scopes of the keys that it calls with. */
  callers: Map<string, Promise<string>>
  /** Ids, keys and secrets that nobody else may see. */
  secrets: Set<string>
}

const service = useOwnService()
let sides: Record<Side, Organisation>

beforeAll(async () => {
  sides = { alpha: await makeOrganisation('alpha'), bravo: await makeOrganisation('bravo') }
})

const other = (side: Side): Side => (side === 'alpha' ? 'bravo' : 'alpha')

async function makeOrganisation(tag: Side): Promise<Organisation> {
  const { db, clock } = service.services
  const { id: org } = await createOrganisation(db, clock, { name: `${tag} org`, plan: 'business', monthlyLimit: null })
  const prompts = [`pmt_${tag}_1`, `pmt_${tag}_2`]
  for (const [index, id] of prompts.entries()) {
    const file = { repository: index === 0 ? `${tag}/prompts` : 'shared/prompts', path: 'shared.md' }
    await service.createPrompt({ org }, `${tag} prompt`, { id, ...file })
    await recordEntry(db, clock, await requirePrompt(db.sql, id), {
      action: 'pr_merged',
      user: { name: `${tag} person`, email: `person@${tag}.example` },
      commit_sha: `${tag}${index}c0ffee`,
      branch_name: `${tag}-branch`,
      pr_number: 7,
      pr_url: `https://github.com/${tag}/prompts/pull/7`,
    })
  }
  const owner = await requireOrganisation(db, org)
  const { organisationId } = owner
  const { secret } = await setWebhook(db, clock, owner, operator)
  const given = { url: `https://127.0.0.1/${tag}` }
  const { id: endpoint } = await createEndpoint(db, clock, organisationId, given, undefined, operator)
  await emitEvent(db.sql, { organisationId, type: 'ping', dedupKey: 'test', data: {}, now: clock.now() })
  const empty = {
    keyIds: [],
    endpoints: [endpoint],
    events: [],
    numbers: [],
    cursors: [],
    etags: [],
    callers: new Map(),
  }
  return { tag, org, prompts, ...empty, secrets: new Set([tag, org, secret]) }
}

/** The key of an organisation that has these scopes, made when it is first needed. */
function keyOf(own: Organisation, given: Scope[]): Promise<string> {
  const name = given.join()
  const known = own.callers.get(name)
  if (known) return known
  const made = service.createKey(own, given, { name: own.tag }).then((made) => {
    own.keyIds.push(made.id)
    for (const text of [made.id, made.key, made.key.slice(0, 12)]) own.secrets.add(text)
    return made.key
  })
  own.callers.set(name, made)
  return made
}

/** Adds what an answer has shown to its organisation, so that it is looked for in the answers to the other. */
function collect(own: Organisation, { headers, body }: Answer): void {
  const etag = headers.get('etag')
  if (etag) own.etags.push(etag)
  if (typeof body?.pagination?.next_cursor === 'string') own.cursors.push(body.pagination.next_cursor)
  for (const { id, key, secret } of [body?.data].flat().filter((item) => item && typeof item === 'object')) {
    if (/^key_/.test(id)) own.keyIds.push(id)
    if (/^pmt_/.test(id)) own.prompts.push(id)
    if (/^whe_/.test(id)) own.endpoints.push(id)
    if (/^msg_/.test(id)) own.events.push(id)
    if (typeof id === 'number') own.numbers.push(String(id))
    for (const text of [id, key, secret]) if (typeof text === 'string') own.secrets.add(text)
  }
}

// A number picks from what is known when the request is sent.
const pick = fc.nat()
const from = <T>(list: T[], number: number): T | undefined => list[number % Math.max(list.length, 1)]

/** Which thing of which organisation a part of a request names. */
const reference = fc.record({
  whose: fc.constantFrom('own' as const, 'other' as const, 'other' as const, 'none' as const),
  pick,
})

const tagged = fc.constantFrom('TAG one', 'TAG two', 'TAG')
const given = fc.record(
  {
    name: fc.oneof(tagged, fc.constantFrom('', 7)),
    id: fc.oneof(
      fc.integer({ min: 1, max: 99_999 }).map((n) => `pmt_TAG_${n}`),
      fc.constantFrom('x'),
    ),
    repository: fc.constantFrom('TAG/prompts', 'shared/prompts', 'SHARED/prompts', null),
    path: fc.constantFrom('TAG.md', 'shared.md', './shared.md', null),
    preset: fc.constantFrom('app', 'reader', 'ci', 'admin', 'root'),
    scopes: fc.subarray([...scopes, 'other:read']),
    expires_at: fc.constantFrom('2126-01-01T00:00:00Z', null, 'later'),
    overlap_seconds: fc.constantFrom(0, 60, -1),
    value: fc.constantFrom('positive', 'negative', 'neither'),
    metadata: fc.constantFrom({ session: 'TAG' }, [], null),
    action: fc.constantFrom('deployed', 'pr_opened', 'gone'),
    user: fc.constantFrom({ name: 'TAG person', email: 'person@TAG.example' }, null),
    commit_sha: fc.constantFrom('TAG0c0ffee', 'c0ffee00', ''),
    branch_name: fc.constantFrom('TAG-branch', 'main'),
  },
  { requiredKeys: [] },
)

/** Bodies that are right for a route, beside those that are right by chance alone. */
const wellFormed = fc.constantFrom<object>(
  { name: 'TAG key', preset: 'app' },
  { name: 'TAG prompt', repository: 'shared/prompts', path: 'shared.md' },
  { overlap_seconds: 60 },
  { url: 'https://127.0.0.1/TAG' },
  { value: 'positive', metadata: { session: 'TAG' } },
  { signals: [{ value: 'positive', metadata: { session: 'TAG' }, idempotency_key: 'shared-1' }, { value: 'TAG' }] },
  {
    action: 'deployed',
    user: { name: 'TAG', email: 'a@TAG.example' },
    commit_sha: 'TAG1c0ffee',
    branch_name: 'TAG-branch',
  },
)

const sent = (routes: { method: string; path: string }[]) =>
  fc.record({
    side: fc.constantFrom<Side>('alpha', 'bravo'),
    scopes: fc.oneof(
      { weight: 3, arbitrary: fc.constant<Scope[]>([...scopes]) },
      { weight: 2, arbitrary: fc.subarray<Scope>([...scopes], { minLength: 1 }) },
    ),
    isAnonymous: fc.nat({ max: 19 }).map((number) => number === 0),
    route: fc.constantFrom(...routes),
    reference,
    cursor: reference,
    etag: reference,
    query: fc.subarray(['limit=1', 'limit=100', 'cursor=CURSOR', 'page=2', 'action=deployed', 'since=2020-01-01']),
    idempotencyKey: fc.constantFrom(undefined, undefined, 'shared-1', 'shared-2'),
    body: fc.oneof(given, wellFormed),
  })

type Sent = ReturnType<typeof sent> extends fc.Arbitrary<infer T> ? T : never

const unknown = {
  prompt_id: 'pmt_none',
  key_id: 'key_none',
  endpoint_id: 'whe_none',
  event_id: 'msg_none',
  org_id: 'org_none',
  signal_id: '999999999999',
  entry_id: '999999999999',
}

function pathOf({ side, route, reference: { whose, pick } }: Sent, isTwin = false): string {
  const owner = sides[whose === 'own' ? side : other(side)]
  const known = {
    prompt_id: owner.prompts,
    key_id: owner.keyIds,
    endpoint_id: owner.endpoints,
    event_id: owner.events,
    org_id: [owner.org],
    signal_id: owner.numbers,
    entry_id: owner.numbers,
  }
  return route.path.replace(/:(\w+)/g, (_, name: keyof typeof unknown) =>
    isTwin || whose === 'none' ? unknown[name] : (from(known[name], pick) ?? unknown[name]),
  )
}

async function send(request: Sent, path: string): Promise<Answer & { sentText: string }> {
  const { side, route, query, cursor, etag, idempotencyKey, body } = request
  const own = sides[side]
  const cursors = sides[cursor.whose === 'own' ? side : other(side)].cursors
  const etags = sides[etag.whose === 'own' ? side : other(side)].etags
  const search = query.join('&').replace('CURSOR', from(cursors, cursor.pick) ?? 'none')
  const text = JSON.stringify(body).replaceAll('TAG', own.tag)
  const headers: Record<string, string> = {
    'content-type': 'application/json',
    'if-none-match': from(etags, etag.pick) ?? '"none"',
    ...(idempotencyKey ? { 'idempotency-key': idempotencyKey } : {}),
  }
  const key = request.isAnonymous ? undefined : await keyOf(own, request.scopes)
  const answer = await service.call(route.method, `${path}?${search}`, {
    headers,
    ...(key ? { key } : {}),
    ...(['GET', 'HEAD', 'DELETE'].includes(route.method) ? {} : { body: text }),
  })
  return { ...answer, sentText: `${path}?${search} ${text} ${JSON.stringify(headers)}` }
}

/** What an answer says, without the request id and the id that was asked for. */
const withoutIds = ({ text, headers }: Answer, path: string) =>
  path
    .split('/')
    .filter((part) => /^(pmt|key|org|whe|msg)_/.test(part))
    .reduce((shown, id) => shown.replaceAll(id, 'ID'), text)
    .replaceAll(headers.get('x-request-id') as string, 'REQUEST')

test(`${requests} random requests of two organisations and all sets of scopes leak nothing (TEST_SEED=${seed})`, async () => {
  const table = createApp(service.services).routes as { method: string; path: string }[]
  const routes = table.filter(
    ({ method, path }) => method !== 'ALL' && !/^\/(docs|console|guides)\/|^\/(mcp|feedback)/.test(path),
  )
  const statuses = new Map<number, number>()
  // Two keys of each side change something for certain: with some seeds, the random requests of only one of them succeed.
  for (const own of Object.values(sides)) {
    for (const held of [['prompts:write'], ['prompts:write', 'prompts:read']] satisfies Scope[][]) {
      const answer = await service.post('/prompts', await keyOf(own, held), { name: `${own.tag} made` })
      expect(answer.status).toBe(201)
      statuses.set(answer.status, 1)
      collect(own, answer)
    }
  }
  await fc.assert(
    fc.asyncProperty(sent(routes), async (request) => {
      const { side, route, reference, idempotencyKey } = request
      const theirs = sides[other(side)]
      const path = pathOf(request)
      const answer = await send(request, path)
      statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1)
      expect(answer.status).toBeLessThan(500)
      // An answer may repeat what was asked for, and nothing else of the other organisation.
      const shown = `${answer.text} ${JSON.stringify([...answer.headers])}`.toLowerCase()
      const leaked = [...theirs.secrets].filter(
        (text) => shown.includes(text.toLowerCase()) && !answer.sentText.includes(text),
      )
      expect(leaked).toEqual([])
      // What is theirs is answered as what does not exist.
      if (reference.whose === 'other' && route.path.includes(':') && idempotencyKey === undefined) {
        const twinPath = pathOf(request, true)
        const twin = await send(request, twinPath)
        // The last test of endpoints that a minute allows may lie between the two.
        const first = twin.status === 429 && answer.status !== 429 ? await send(request, path) : answer
        expect([first.status, withoutIds(first, path)]).toEqual([twin.status, withoutIds(twin, twinPath)])
      } else if (answer.status < 300) collect(sides[side], answer)
    }),
    // The requests build on each other, so that a smaller example would not fail by itself.
    { numRuns: requests, seed, endOnFailure: true },
  )
  // Each kind of answer came up, so the requests reached every branch.
  expect([...statuses.keys()]).toEqual(expect.arrayContaining([200, 201, 401, 403, 404, 422]))
  for (const side of ['alpha', 'bravo'] as const) {
    const { org, keyIds } = sides[side]
    const rows = await service.services.db.sql<{ actor: string }>`
      select distinct a.actor from audit_log a join organisations o on o.id = a.organisation_id
      where o.public_id = ${org}`
    const strangers = rows.filter(({ actor }) => actor !== 'cli' && !keyIds.includes(actor))
    expect(strangers).toEqual([])
    expect(rows.length).toBeGreaterThan(2)
  }
}, 120_000)
