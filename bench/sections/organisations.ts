import { compare } from '../compare.ts'
import type { Context } from '../context.ts'
import { createTenants, promptOf, toHistoryPage, unreachableLimit } from '../fixtures.ts'
import { writeHistory } from '../histories.ts'
import type { Request } from '../load.ts'
import { measure } from '../measure.ts'
import type { Round } from '../plan.ts'
import { runProgram } from '../processes.ts'

const organisations = 5_000
const entriesEach = 5

/** What it costs that callers are of many organisations, each with its own key, prompt and count. */
export async function measureOrganisations(context: Context): Promise<void> {
  const shape = { promptsEach: 1, monthlyLimit: unreachableLimit }
  const one = await createTenants(context.database, { organisations: 1, ...shape })
  const many = await createTenants(context.database, { organisations, ...shape })
  const { program, settings, cwd, signal } = context.operator
  const prompts = [...one, ...many].map(promptOf)
  const file = await writeHistory(context.folder, prompts, entriesEach * prompts.length)
  await runProgram([program, 'history', 'import', file], { cwd, env: settings, signal })

  const server = await context.serve()
  for (const [connections, atLeast] of [
    [256, 0.7],
    [64, 0.6],
  ] as const) {
    const run = (name: string, status: number, requests: Request[]) => (round: Round) => {
      const phase = { name: `${name}, ${connections} connections`, servers: [server], connections, requests, status }
      return measure(context, phase, round)
    }
    const signals = await compare(context, {
      one: run('POST signals, 1 organisation', 201, one),
      many: run('POST signals, 5,000 organisations', 201, many),
    })
    const history = await compare(context, {
      one: run('GET history, 1 organisation', 200, one.map(toHistoryPage)),
      many: run('GET history, 5,000 organisations', 200, many.map(toHistoryPage)),
    })
    context.report.targets.push(
      { name: `signals of 5,000 organisations ÷ of 1, at ${connections}`, value: signals('many', 'one'), atLeast },
      { name: `history of 5,000 organisations ÷ of 1, at ${connections}`, value: history('many', 'one'), atLeast },
    )
  }
  await server.stop()
}
