// Answers messages of the Model Context Protocol. Loaded with the first such request: the library is large.
import { createMcpHandler, Server } from '@modelcontextprotocol/server'
import { keepLargeIntegers, problemOf, requestOf, type Tool } from './tools.ts'

/** Calls a route of the interface as the caller of the message. */
export type CallRoute = (
  tool: Tool,
  request: { params: object; query: string; headers: Record<string, string>; body: string | undefined },
) => Promise<Response>

type Answer = {
  data?: unknown
  pagination?: { per_page: number; current_page?: number }
  error?: { message: string; details?: { path: string; message: string }[] }
}

/** The largest answer. A model would have to read it all. */
const maxBytes = 20_000

const annotations = { readOnlyHint: true, destructiveHint: false, openWorldHint: false }

const describe = ({ name, description, method, takes, required }: Tool) => ({
  name,
  description,
  inputSchema: { type: 'object' as const, properties: takes, required },
  outputSchema: { type: 'object' as const, properties: { data: {} }, required: ['data'] },
  annotations: { ...annotations, readOnlyHint: method === 'GET' },
})

export async function answerMessage(
  request: Request,
  message: unknown,
  version: string,
  allowed: Tool[],
  callRoute: CallRoute,
): Promise<Response> {
  const { fetch } = createMcpHandler(() => {
    const server = new Server({ name: 'prompt-signals', version }, { capabilities: { tools: {} } })
    server.setRequestHandler('tools/list', () => ({ tools: allowed.map(describe) }))
    server.setRequestHandler('tools/call', async ({ params: { name, arguments: given = {} } }) => {
      const tool = allowed.find((one) => one.name === name)
      if (!tool) return failed(`There is no tool ${name}, or the key may not use it.`)
      const problem = problemOf(tool, given)
      return problem ? failed(problem) : callTool(tool, given, callRoute)
    })
    return server
  })
  return fetch(request, { parsedBody: message })
}

/** Asks again for smaller pages while the answer is too long. */
async function callTool(tool: Tool, given: Record<string, unknown>, callRoute: CallRoute) {
  let asked = given
  for (;;) {
    const response = await callRoute(tool, requestOf(tool, asked))
    const answer = JSON.parse(await response.text(), keepLargeIntegers) as Answer
    if (answer.error) return failed(explain(answer.error))
    const note = asked === given ? {} : { shortened: `To 20 kB: go on with limit ${asked.limit}.` }
    const structuredContent = { ...answer, ...note }
    let text = JSON.stringify(structuredContent)
    const isTooLong = () => Buffer.byteLength(text) > maxBytes
    while (isTooLong() && sumUpPrompts(structuredContent)) text = JSON.stringify(structuredContent)
    if (!isTooLong()) return { content: [{ type: 'text' as const, text }], structuredContent }
    const smaller = smallerPage(answer, Buffer.byteLength(text))
    if (!smaller) return failed('The answer is longer than 20 kB. Ask for a shorter time or a longer interval.')
    asked = { ...given, ...smaller }
  }
}

type Usage = { prompts: { total: number }[]; other_prompts: { prompts: number; total: number } }

/** The usage has no pages: adds its last prompts to the others, as the interface does past the first hundred. */
function sumUpPrompts({ data }: Answer): boolean {
  const { prompts = [], other_prompts: others } = data as Partial<Usage>
  const last = prompts.splice(-10)
  if (!others || last.length === 0) return false
  others.prompts += last.length
  for (const { total } of last) others.total += total
  return true
}

/** The page that begins with the same item and is short enough, if its items are alike. Its size divides the larger one. */
function smallerPage({ pagination }: Answer, bytes: number): { limit: number; page?: number } | undefined {
  if (!pagination || pagination.per_page === 1) return undefined
  const { per_page, current_page } = pagination
  let limit = Math.max(Math.floor((per_page * maxBytes) / bytes / 1.2), 1)
  while (per_page % limit !== 0) limit -= 1
  return { limit, ...(current_page && { page: ((current_page - 1) * per_page) / limit + 1 }) }
}

const explain = ({ message, details = [] }: NonNullable<Answer['error']>): string =>
  [message, ...details.map(({ path, message }) => `${path}: ${message}.`)].join(' ')

const failed = (text: string) => ({ content: [{ type: 'text' as const, text }], isError: true })
