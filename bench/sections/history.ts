import { compare } from '../compare.ts'
import type { Context } from '../context.ts'
import { promptOf, toHistoryPage } from '../fixtures.ts'
import { writeHistory } from '../histories.ts'
import type { Request } from '../load.ts'
import { measure } from '../measure.ts'
import { readPages } from '../pgbench.ts'
import type { Round } from '../plan.ts'
import { runProgram } from '../processes.ts'
import type { Server } from '../server.ts'

const entriesEach = 500
const writesPerSecond = 10

/** Pages of 25 over 100 prompts, beside a plain service and beside Postgres reading the same rows. */
export async function measureHistory(context: Context): Promise<void> {
  const pages = context.requests.map(toHistoryPage)
  const prompts = pages.map(promptOf)
  const { program, settings, cwd, signal } = context.operator
  const file = await writeHistory(context.folder, prompts, entriesEach * prompts.length)
  await runProgram([program, 'history', 'import', file], { cwd, env: settings, signal })
  await context.database.sql.script('vacuum analyze history_entries')

  const [ours, plain] = [await context.serve(), await context.servePlain()]
  const get = (server: Server, name: string, connections: number) => (round: Round) =>
    measure(
      context,
      {
        name: `${name}, ${connections} connections`,
        servers: [server],
        connections,
        requests: pages,
        status: 200,
      },
      round,
    )
  await compare(context, { few: get(ours, 'GET history', 8), many: get(ours, 'GET history', 256) })
  const ratio = await compare(context, {
    ours: get(ours, 'GET history', 64),
    rows: (round) => readPages(context, round),
    plain: get(plain, 'plain service, history', 64),
  })
  const writer = writeAlong(ours, pages)
  await compare(context, { beside: get(ours, `GET history while ${writesPerSecond} entries a second are written`, 64) })
  await writer.stop()
  await Promise.all([ours.stop(), plain.stop()])

  context.report.targets.push(
    { name: 'history at 64 ÷ its rows by pgbench', value: ratio('ours', 'rows'), atLeast: 1.1 },
    { name: 'history at 64 ÷ plain service at 64', value: ratio('ours', 'plain'), atLeast: 8 },
  )
}

/** Another client that writes history, to one prompt after the other. */
function writeAlong({ url }: Server, pages: Request[]) {
  let number = 0
  const write = async () => {
    const { path, key } = pages[number % pages.length] as Request
    number += 1
    const entry = {
      action: 'deployed',
      user: { name: 'Ada Example', email: 'ada@example.com' },
      commit_sha: `along${number}`,
      branch_name: 'main',
    }
    const answer = await fetch(url + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify(entry),
    })
    if (answer.status !== 201) throw new Error(`Writing history was answered with ${answer.status}`)
  }
  const writes: Promise<void>[] = []
  const timer = setInterval(() => writes.push(write()), 1000 / writesPerSecond)
  return {
    async stop() {
      clearInterval(timer)
      await Promise.all(writes)
    },
  }
}
