import type { Request } from './load.ts'
import { runProgram } from './processes.ts'

/** The program and the settings of the database it works on. */
export type Operator = { program: string; settings: Record<string, string>; cwd: string; signal: AbortSignal }

type Shape = { organisations: number; promptsEach: number; monthlyLimit: number }

/** Beyond any load, and within the column. */
export const unreachableLimit = 2_000_000_000

/** As many as the machines that this is meant for have cores to spare. */
const commandsAtOnce = 2

const body = JSON.stringify({ value: 'positive', metadata: { session: 'a81c', rating: 5 } })

/** Makes organisations with a key and prompts each, and answers one request to record a signal for each prompt. */
export async function createTenants(operator: Operator, shape: Shape): Promise<Request[]> {
  const limit = String(shape.monthlyLimit)
  const organisations = await inTurns(shape.organisations, async (index) => {
    const org = await one(operator, 'orgs', 'create', '--name', `Org ${index}`, '--plan=free', '--monthly-limit', limit)
    return { org, key: await one(operator, 'keys', 'create', '--org', org.id) }
  })
  // Prompt by prompt, so that requests after each other are of different organisations.
  return inTurns(shape.organisations * shape.promptsEach, async (index) => {
    const { org, key } = organisations[index % organisations.length] as (typeof organisations)[number]
    const { id } = await one(operator, 'prompts', 'create', '--org', org.id, '--name', `Prompt ${index}`)
    return { method: 'POST', path: `/api/v1/prompts/${id}/signals`, key: key.key, body }
  })
}

/** The one result of a command. */
async function one({ program, settings, cwd, signal }: Operator, ...args: string[]) {
  const output = await runProgram([program, ...args, '--json'], { cwd, env: settings, signal })
  return JSON.parse(output) as Record<string, string> & { id: string; key: string }
}

async function inTurns<T>(count: number, make: (index: number) => Promise<T>): Promise<T[]> {
  const made: T[] = []
  let next = 0
  const work = async () => {
    for (let index = next++; index < count; index = next++) made[index] = await make(index)
  }
  await Promise.all(Array.from({ length: commandsAtOnce }, work))
  return made
}
