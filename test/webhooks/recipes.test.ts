// The recipes of docs/notify.md, each run as it stands there.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { Webhook } from 'standardwebhooks'
import { readBlock, readYaml } from '../documents.ts'
import { createSource, gitEnvironment } from '../git/clone.ts'
import { merged, onDays, signals } from '../impact/history.ts'
import { createFolder, eventually, PROGRAM } from '../program.ts'
import { entry } from '../service.ts'
import { openConnection } from '../socket.ts'
import { useProgram } from '../use.ts'

const { client, operator, server, tenant } = useProgram()

const guide = 'docs/notify.md'

const daysAgo = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString()
const [live, canary] = ['8f14e45fceea8f14e45fceea8f14e45fceea1234', '45c48cce2e2d45c48cce2e2d45c48cce2e2d1234']

async function createPrompt(pr_url: string, pr_number = 7) {
  const { id: prompt } = await operator.one('prompts', 'create', '--org', tenant.org, '--name', 'greeting')
  const record = (one: object) => client.post(`/prompts/${prompt}/history`, tenant.key, one)
  await record(entry({ commit_sha: live, created_at: daysAgo(20) }))
  await record({ ...merged(canary, daysAgo(3), pr_number), pr_url, title: 'Warmer' })
  return prompt as string
}

const send = (prompt: string, commit_sha: string, positive: number) =>
  Promise.all(
    Array.from({ length: 100 }, (_, index) =>
      client.postSignal(prompt, tenant.key, {
        value: index < positive ? 'positive' : 'negative',
        metadata: { commit_sha },
      }),
    ),
  )

/** The signals of the live commit are of the last week. */
async function sendLive(prompt: string, positive: number): Promise<void> {
  const sent = onDays(7, signals(positive, 100 - positive, { at: daysAgo(10) }))
  const lines = sent.map(({ value, at }) => JSON.stringify({ value, created_at: at, metadata: { commit_sha: live } }))
  const file = join(createFolder(), 'past.ndjson')
  await Bun.write(file, `${lines.join('\n')}\n`)
  await operator.plain('signals', 'import', file, '--prompt', prompt)
}

type Comment = { id: number; body: string }

/** The comments of pull request 7, on a host whose API is that of GitHub or of GitLab. No other can be commented on. */
const comments: Comment[] = []
const calls: string[] = []
let host: ReturnType<typeof Bun.serve>
let source: string

beforeAll(async () => {
  host = Bun.serve({
    port: 0,
    async fetch(request) {
      const { pathname, searchParams } = new URL(request.url)
      const isKnown = ['Bearer token', 'token'].includes(
        request.headers.get('authorization') ?? request.headers.get('private-token') ?? '',
      )
      if (!isKnown) return new Response(null, { status: 401 })
      if (/\/[0-689]\//.test(pathname)) return new Response(null, { status: 403 })
      if (request.method === 'GET') {
        const start = (Number(searchParams.get('page')) - 1) * 100
        return Response.json(comments.slice(start, start + 100))
      }
      calls.push(`${request.method} ${pathname}`)
      const { body } = (await request.json()) as Comment
      const known = comments.find(({ id }) => pathname.endsWith(`/${id}`))
      if (known) known.body = body
      else comments.push({ id: 1_000 + comments.length, body })
      return Response.json({})
    },
  })
  source = await createSource('deploy/get-binary.sh', 'deploy/comment-verdicts.sh')
})
afterAll(() => host.stop(true))

// Hosts take the names of repositories in any case, and links have them in lower case.
const hosts = [
  [
    'GitHub Actions',
    'https://github.com/acme/prompts/pull/7',
    async () => (await readYaml(guide, 'runs-on')).jobs.verdicts.steps[1].run as string,
    () => ({
      ...{ GITHUB_SERVER_URL: 'https://github.com', GITHUB_REPOSITORY: 'Acme/Prompts', GITHUB_TOKEN: 'token' },
      GITHUB_API_URL: host.url.origin,
    }),
    ['POST /repos/Acme/Prompts/issues/7/comments', 'PATCH /repos/Acme/Prompts/issues/comments/1100'],
  ],
  [
    'GitLab CI',
    'https://gitlab.com/acme/prompts/-/merge_requests/7',
    async () => ['set -e', ...(await readYaml(guide, 'CI_PIPELINE_SOURCE')).verdicts.script].join('\n'),
    () => ({
      ...{ GITLAB_CI: 'true', GITLAB_TOKEN: 'token', CI_PROJECT_URL: 'https://gitlab.com/Acme/Prompts' },
      ...{ CI_API_V4_URL: host.url.origin, CI_PROJECT_ID: '12' },
    }),
    ['POST /projects/12/merge_requests/7/notes', 'PUT /projects/12/merge_requests/7/notes/1100'],
  ],
] as const

test.each(hosts)(
  '%s comments once the verdict is known, and keeps that one comment current',
  async (_, url, readStep, variables, wanted) => {
    const step = await readStep()
    const prompt = await createPrompt(url)
    const run = async (wantedEnd = { exitCode: 0, errors: '' }) => {
      const folder = createFolder()
      const child = Bun.spawn(['sh', '-c', step], {
        cwd: folder,
        env: {
          ...gitEnvironment,
          ...variables(),
          ...{ RUNNER_TEMP: folder, CI_PROJECT_DIR: join(folder, 'project'), PROMPT_SIGNALS_SOURCE: source },
          ...{ PROMPT_SIGNALS_URL: server.url, PROMPT_SIGNALS_KEY: tenant.key },
        },
        stdout: 'ignore',
        stderr: 'pipe',
      })
      const [exitCode, errors] = await Promise.all([child.exited, child.stderr.text()])
      expect({ exitCode, errors }).toEqual(wantedEnd)
      return calls.splice(0)
    }
    // A page of other comments, each with what anybody can write of the mark.
    const body = '<!-- prompt-signals -->'
    comments.splice(0, comments.length, ...Array.from({ length: 100 }, (_, id) => ({ id, body })))
    await sendLive(prompt, 40)
    expect(await run()).toEqual([])
    await send(prompt, canary, 90)
    expect(await run()).toEqual([wanted[0]])
    expect(await run()).toEqual([])
    expect(comments.at(-1)?.body).toMatch(
      /^<!-- prompt-signals [0-9a-f]{64} -->\n\*\*This (pull|merge) request: 1 better/,
    )
    expect(comments.at(-1)?.body).toContain(
      `Better since [${url.includes('gitlab') ? 'MR !7' : 'PR #7'}](<${url}>): 40.0 → 90.0 % positive`,
    )
    await send(prompt, canary, 90)
    expect(await run()).toEqual([wanted[1]])
    // A verdict may be undecided again, and the comment says so.
    await Promise.all([1, 2, 3].map(() => send(prompt, canary, 0)))
    expect(await run()).toEqual([wanted[1]])
    expect(comments.at(-1)?.body).toContain(': 1 undecided')
    // The address tells the pull request, not the number beside it. One that is refused does not stop the others.
    const refused = url.replace(/7$/, '6')
    const other = await createPrompt(refused, 7)
    await Promise.all([sendLive(other, 40), send(other, canary, 90), send(prompt, canary, 90)])
    const errors = `curl: (22) The requested URL returned error: 403\n${refused} could not be commented on\n`
    expect(await run({ exitCode: 1, errors })).toEqual([wanted[1]])
    expect(comments.length).toBe(101)
  },
)

test('the gate fails on an undecided canary, and lets a better one through', async () => {
  const prompt = await createPrompt('https://example.com/7')
  const recipe = await readBlock(guide, 'sh', '--fail-on')
  const run = () =>
    Bun.spawnSync(
      ['sh', '-c', recipe.replace('https://prompts.example.com', server.url).replace('prompt-signals ', `${PROGRAM} `)],
      {
        env: {
          ...gitEnvironment,
          PROMPT: prompt,
          LIVE_COMMIT: live,
          CANARY_COMMIT: canary,
          PROMPT_SIGNALS_KEY: tenant.key,
        },
      },
    ).exitCode
  await send(prompt, live, 40)
  expect(run()).toBe(1)
  await send(prompt, canary, 90)
  expect(run()).toBe(0)
})

test('the line for Slack creates an endpoint', async () => {
  const recipe = (await readBlock(guide, 'sh', '--kind slack'))
    .trim()
    .replace('Acme', tenant.org)
    .replace('…', 'T0/B0/x')
  const created = await operator.one(...recipe.split(' ').slice(1))
  expect(created).toMatchObject({ kind: 'slack', events: ['impact.decided'] })
})

test.each(['node', process.execPath])('the receiver takes what is signed, and nothing else, on %s', async (program) => {
  const file = join(createFolder(), 'receiver.mjs')
  await Bun.write(file, await readBlock(guide, 'js', 'createHmac'))
  const secret = `whsec_${Buffer.alloc(32, 'a').toString('base64')}`
  const free = Bun.serve({ port: 0, fetch: () => new Response() })
  const url = free.url.href
  await free.stop(true)
  const child = Bun.spawn([program, file], {
    env: { WEBHOOK_SECRET: secret, PORT: new URL(url).port },
    stdout: 'pipe',
  })
  try {
    const post = async (signWith: string, secondsAgo = 0) => {
      const at = new Date(Date.now() - secondsAgo * 1_000)
      const body = '{"type":"ping","timestamp":"2026-11-17T00:00:00.000Z","data":{}}'
      const headers = {
        'webhook-id': 'msg_1',
        'webhook-timestamp': `${Math.floor(at.getTime() / 1_000)}`,
        'webhook-signature': `v1,AAAA ${new Webhook(signWith).sign('msg_1', at, body)}`,
      }
      return (await fetch(url, { method: 'POST', headers, body })).status
    }
    await eventually(() => post(secret).catch(() => 'not listening'), 204)
    expect([await post(`whsec_${btoa('another secret')}`), await post(secret, 600)]).toEqual([401, 401])
    expect((await fetch(url, { method: 'POST', body: '{}' })).status).toBe(401)
    // As many characters as a signature has, but more bytes; and a body that is cut off.
    const odd = await openConnection(url)
    odd.socket.write(
      Buffer.from(
        `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nWebhook-Signature: ${'é'.repeat(47)}\r\n\r\n`,
        'latin1',
      ),
    )
    expect(await odd.until((sofar) => sofar.includes('\r\n'))).toStartWith('HTTP/1.1 401 ')
    odd.socket.destroy()
    const cut = await openConnection(url)
    await new Promise((resolve) =>
      cut.socket.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{', resolve),
    )
    cut.socket.destroy()
    expect([await post(secret), await post(secret)]).toEqual([204, 204])
  } finally {
    child.kill()
  }
  expect(await child.stdout.text()).toMatch(/^(msg_1 ping\n)+$/)
})
