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
    select o.id as organisation_id, coalesce(o.monthly_limit, l.monthly_limit) as monthly_limit, p.id as prompt_id
    from api_keys k
    join organisations o on o.id = k.organisation_id
    join plans l on l.name = o.plan
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

const refuse = (reply, status, code, message, context) =>
  reply.code(status).send({ error: { code, message, ...context } })

app.post(
  '/api/v1/prompts/:promptId/signals',
  { schema: { body, response: { 201: created } } },
  async (request, reply) => {
    const key = request.headers.authorization?.replace(/^Bearer +/i, '') ?? ''
    const hash = createHash('sha256').update(key).digest()
    const [found] = (await pool.query({ ...lookUp, values: [hash, request.params.promptId] })).rows
    if (!found) return refuse(reply, 401, 'unauthorized', 'Send a valid API key.')
    if (found.prompt_id === null) return refuse(reply, 404, 'not_found', 'There is no such prompt.')

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
      return refuse(reply, 429, 'rate_limited', 'The limit is reached.', { limit, used: limit, resets_at: resetsAt })
    }

    const { value, metadata = null } = request.body
    const values = [found.organisation_id, found.prompt_id, value, metadata, now]
    const { rows } = await pool.query({ ...insert, values })
    reply.code(201)
    return { data: { id: Number(rows[0].id), value, created_at: now.toISOString() } }
  },
)

const url = await app.listen({ host: '127.0.0.1', port: 0 })
console.log(JSON.stringify({ msg: 'serving', url }))
process.once('SIGTERM', () => process.exit(0))
