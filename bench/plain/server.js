// The same service as one writes it plainly: for every request a look-up, a count in Redis and an insert.
// What the benchmark compares with; run by Node, as such services are.
import { createHash } from 'node:crypto'
import Fastify from 'fastify'
import { Redis } from 'ioredis'
import pg from 'pg'

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 20 })
const redis = new Redis(process.env.REDIS_URL, { keyPrefix: 'plain:', enableAutoPipelining: true })
const app = Fastify()

// Named, so that each connection prepares them once.
const lookUp = {
  name: 'look-up',
  text: `
    select o.id as organisation_id, o.monthly_limit, p.id as prompt_id
    from api_keys k
    join organisations o on o.id = k.organisation_id
    left join prompts p on p.organisation_id = o.id and p.public_id = $2
    where k.hash = $1 and k.revoked_at is null and (k.expires_at is null or k.expires_at > now())`,
}
const insert = {
  name: 'insert',
  text: `
    insert into plain_signals (organisation_id, prompt_id, value, metadata, created_at)
    values ($1, $2, $3, $4, $5)
    returning id`,
}

const count = { name: 'count', text: 'select count(*)::int as total from history_entries where prompt_id = $1' }
const page = {
  name: 'page',
  text: `
    select id, action, user_name, user_email, commit_sha, pr_number, pr_url, branch_name, created_at
    from history_entries
    where prompt_id = $1
    order by created_at desc, id desc
    limit $2 offset $3`,
}

const body = {
  type: 'object',
  required: ['value'],
  properties: { value: { enum: ['positive', 'negative'] }, metadata: { type: 'object' } },
}
const created = {
  type: 'object',
  properties: {
    data: {
      type: 'object',
      properties: { id: { type: 'integer' }, value: { type: 'string' }, created_at: { type: 'string' } },
    },
  },
}

const replyError = (reply, status, code, message, context) =>
  reply.code(status).send({ error: { code, message, ...context } })

app.post(
  '/api/v1/prompts/:promptId/signals',
  { schema: { body, response: { 201: created } } },
  async (request, reply) => {
    const key = request.headers.authorization?.replace(/^Bearer +/i, '') ?? ''
    const hash = createHash('sha256').update(key).digest()
    const [found] = (await pool.query({ ...lookUp, values: [hash, request.params.promptId] })).rows
    if (!found) return replyError(reply, 401, 'unauthorized', 'Send a valid API key.')
    if (found.prompt_id === null) return replyError(reply, 404, 'not_found', 'There is no such prompt.')

    const now = new Date()
    const resetsAt = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1))
    const counter = `signals:${found.organisation_id}:${now.toISOString().slice(0, 7)}`
    const [[, used]] = await redis
      .multi()
      .incr(counter)
      .expireat(counter, resetsAt.getTime() / 1000)
      .exec()
    const limit = found.monthly_limit
    if (used > limit) {
      return replyError(reply, 429, 'rate_limited', 'The limit is reached.', {
        limit,
        used: limit,
        resets_at: resetsAt,
      })
    }

    const { value, metadata = null } = request.body
    const values = [found.organisation_id, found.prompt_id, value, metadata, now]
    const { rows } = await pool.query({ ...insert, values })
    reply.code(201)
    return { data: { id: Number(rows[0].id), value, created_at: now.toISOString() } }
  },
)

app.get('/api/v1/prompts/:promptId/history', async (request, reply) => {
  const key = request.headers.authorization?.replace(/^Bearer +/i, '') ?? ''
  const hash = createHash('sha256').update(key).digest()
  const [found] = (await pool.query({ ...lookUp, values: [hash, request.params.promptId] })).rows
  if (!found) return replyError(reply, 401, 'unauthorized', 'Send a valid API key.')
  if (found.prompt_id === null) return replyError(reply, 404, 'not_found', 'There is no such prompt.')
  const [current, limit] = [Number(request.query.page ?? 1), Number(request.query.limit ?? 25)]
  const [{ total }] = (await pool.query({ ...count, values: [found.prompt_id] })).rows
  const { rows } = await pool.query({ ...page, values: [found.prompt_id, limit, (current - 1) * limit] })
  const data = rows.map(({ user_name, user_email, ...row }) => ({
    ...row,
    id: Number(row.id),
    user: { name: user_name, email: user_email },
  }))
  const pages = Math.ceil(total / limit)
  return { data, pagination: { current_page: current, total_pages: pages, total_count: total, per_page: limit } }
})

const url = await app.listen({ host: '127.0.0.1', port: 0 })
console.log(JSON.stringify({ msg: 'serving', url }))
process.once('SIGTERM', () => process.exit(0))
