type Property = { [keyword: string]: string | string[] | { type: string } }

/** A tool is a route of the interface, which validates what it is given. The scope of the route is that of the tool. */
export type Tool = {
  name: string
  description: string
  method: 'GET' | 'POST'
  route: string
  takes: Record<string, Property>
  required: string[]
}

const text = (description: string): Property => ({ type: 'string', description })
const prompt_id = text('pmt_…')
const since = text('ISO 8601, inclusive')
const until = text('ISO 8601')
const limit: Property = { type: 'integer', description: 'at most 100' }
const page: Property = { type: 'integer' }
const cursor = text('next_cursor of the answer before')
const margin: Property = { type: 'number', description: 'smallest difference that matters, 0.05 by default' }
const value: Property = { type: 'string', enum: ['positive', 'negative'] }

/** The route that a tool calls, and the arguments that it needs. */
const calls = (method: Tool['method'], path: string, ...required: string[]) => ({
  method,
  route: `/api/v1${path}`,
  required,
})

export const tools: Tool[] = [
  {
    name: 'list_prompts',
    description: 'Lists the prompts of the organisation with their ids. Start here.',
    ...calls('GET', '/prompts'),
    takes: { search: text('part of a name, id or file path'), limit, cursor },
  },
  {
    name: 'get_history',
    description: 'Who changed a prompt, when, and how it was deployed: directly or by pull request. Newest first.',
    ...calls('GET', '/prompts/:prompt_id/history', 'prompt_id'),
    takes: { prompt_id, branch: text('only this branch'), since, until, limit, page },
  },
  {
    name: 'get_impact',
    description:
      'For each change that went live, newest first: the share of positive signals before and after, the difference with an interval that holds however often one looks, and a verdict. Before and after is no experiment: other things may have changed too.',
    ...calls('GET', '/prompts/:prompt_id/impact', 'prompt_id'),
    takes: { prompt_id, margin, since, until, limit, page },
  },
  {
    name: 'compare_commits',
    description:
      'Compares two commits that ran side by side, by the commit_sha in the metadata of signals. It is an experiment only if users were assigned at random.',
    ...calls('GET', '/prompts/:prompt_id/compare', 'prompt_id', 'base', 'head'),
    takes: {
      prompt_id,
      base: text('commit, at least 7 characters'),
      head: text('the other commit'),
      since,
      until,
      margin,
    },
  },
  {
    name: 'get_stats',
    description: 'Counts signals over time.',
    ...calls('GET', '/prompts/:prompt_id/stats', 'prompt_id'),
    takes: {
      prompt_id,
      interval: { type: 'string', enum: ['hour', 'day', 'week', 'month'] },
      since,
      until,
      by: text('also split by a field, such as metadata.model'),
    },
  },
  {
    name: 'list_signals',
    description: 'Lists single signals with their metadata, newest first.',
    ...calls('GET', '/prompts/:prompt_id/signals', 'prompt_id'),
    takes: {
      prompt_id,
      value,
      since,
      until,
      metadata: {
        type: 'object',
        description: 'only signals with these values',
        additionalProperties: { type: 'string' },
      },
      limit,
      cursor,
    },
  },
  {
    name: 'get_usage',
    description: 'How many signals the organisation has recorded this month, and its limit.',
    ...calls('GET', '/usage'),
    takes: {},
  },
  {
    name: 'record_signal',
    description: 'Records feedback on an output of the prompt. Counts towards the monthly limit.',
    ...calls('POST', '/prompts/:prompt_id/signals', 'prompt_id', 'value'),
    takes: {
      prompt_id,
      value,
      metadata: { type: 'object', description: 'commit_sha in it names the commit that gave the output' },
      idempotency_key: text('signals with the same key are one'),
    },
  },
]

type Arguments = Record<string, unknown>

/** Keeps integers as they are written that a double would round: metadata may hold ids of 64 bits. */
export const keepLargeIntegers = (_: string, value: unknown, context?: { source?: string }): unknown =>
  Number.isInteger(value) && !Number.isSafeInteger(value) ? JSON.rawJSON(context?.source ?? String(value)) : value

/** What the route cannot tell, as it sees only the request. */
export function problemOf({ required }: Tool, given: Arguments): string | undefined {
  const missing = required.find((name) => (given[name] ?? null) === null)
  if (missing) return `${missing}: must be given.`
  const { metadata = null } = given
  // The fields of a text would be its characters.
  if (typeof metadata !== 'object' || Array.isArray(metadata)) return 'metadata: must be an object.'
}

const write = (value: unknown): string => (typeof value === 'string' ? value : String(JSON.stringify(value)))

/** The request of a call: the parameters of its path, its query, its body and its headers. */
export function requestOf({ method, takes }: Tool, given: Arguments) {
  // Models send null for what they leave out. As a key, it would make all their signals one.
  const present: Arguments = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null))
  const { prompt_id, idempotency_key, metadata, ...rest } = present
  const params = { prompt_id: write(prompt_id) }
  if (method === 'POST') {
    // A header cannot hold every character. The service rejects this one in a key, too.
    const key = write(idempotency_key).replace(/[^ -~]/g, 'ÿ')
    const headers = idempotency_key === undefined ? {} : { 'idempotency-key': key }
    return { params, query: '', headers, body: JSON.stringify({ ...rest, metadata }) }
  }
  const known = Object.entries(rest).filter(([name]) => name in takes)
  const filters = Object.entries(metadata ?? {}).map(([field, value]) => [`metadata.${field}`, value])
  const query = new URLSearchParams()
  for (const [name, value] of [...known, ...filters]) query.append(String(name), write(value))
  return { params, query: query.toString(), headers: {}, body: undefined }
}
