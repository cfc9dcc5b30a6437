import { keepExactNumbers } from '../lib/json.ts'
import { dataOf } from '../lib/rest.ts'
import { checkService, withApi } from './api.ts'
import { type Command, UsageError } from './command.ts'

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']

export const commands: Command[] = [
  {
    usage: 'api METHOD PATH [JSON] --org ORG|--url URL',
    description:
      'calls an operation of the interface and prints its answer, such as: api GET /prompts?limit=2 --org ORG',
    check(args) {
      checkService(args)
      const [method, path, json] = args.positionals as [string, string, string?]
      if (!methods.includes(method))
        throw new UsageError(`METHOD must be one of ${methods.join(', ')}, not "${method}"`)
      if (!path.startsWith('/')) throw new UsageError(`PATH must begin with /, such as /prompts, not "${path}"`)
      parseBody(json)
    },
    run: (context) =>
      withApi(context, 'admin', async ({ args, output }, call) => {
        const [method, path, json] = args.positionals as [string, string, string?]
        const answer = await call(method, path.replace(/^\/api\/v1(?=\/)/, ''), parseBody(json))
        if (dataOf(answer) === undefined) output.text(answer.text)
        else if (args.options.json) output.show(answer.body as Record<string, object>)
        else output.text(`${JSON.stringify(answer.body, null, 2)}\n`)
      }),
  },
]

function parseBody(json: string | undefined): unknown {
  try {
    return json && JSON.parse(json, keepExactNumbers)
  } catch {
    throw new UsageError('JSON must be valid JSON')
  }
}
