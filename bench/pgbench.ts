import { readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Context } from './context.ts'
import { countSettled, startTable } from './database.ts'
import type { Round } from './plan.ts'
import { runProgram } from './processes.ts'
import type { Row } from './report.ts'

const clients = 64
/** The share of transactions whose time is kept: enough for a p99, too few to be felt. */
const sampling = 0.05

/** One-row inserts, each a transaction of its own, by the database's own load program. */
export async function insertOneByOne(context: Context, round: Round): Promise<Row> {
  await startTable(context.database, 'single_inserts')
  const name = `pgbench, one-row inserts, ${clients} clients`
  const { row, transactions } = await runScript(context, name, 'one_row.sql', round)
  const inserted = await countSettled(context.database, 'single_inserts')
  if (inserted !== transactions) {
    context.report.problems.push(`pgbench says it inserted ${transactions} rows, and there are ${inserted}`)
  }
  return row
}

/** The newest rows of a history, by the index that a page is read by. */
export const readPages = async (context: Context, round: Round): Promise<Row> =>
  (await runScript(context, `pgbench, 25 rows by index, ${clients} clients`, 'one_page.sql', round)).row

async function runScript({ pgbench, folder, databaseUrl, signal }: Context, name: string, file: string, round: Round) {
  const prefix = join(folder, 'pgbench')
  const run = (seconds: number, ...log: string[]) => {
    const how = ['--no-vacuum', '--protocol=prepared', `--client=${clients}`, '--jobs=2', `--time=${seconds}`]
    const script = `--file=${join(import.meta.dir, file)}`
    return runProgram([pgbench, ...how, ...log, script, databaseUrl], { cwd: folder, signal })
  }
  const warmUp = round.warmUpSeconds > 0 ? readOutput(await run(round.warmUpSeconds)) : undefined
  const log = ['--log', `--log-prefix=${prefix}`, `--sampling-rate=${sampling}`]
  const measured = readOutput(await run(round.seconds, ...log))
  const [p50Ms, p99Ms] = await readPercentiles(folder)
  const errors = (warmUp?.failed ?? 0) + measured.failed
  const row = { name, requestsPerSecond: measured.perSecond, p50Ms, p99Ms, errors, residentMb: null }
  return { row, transactions: (warmUp?.transactions ?? 0) + measured.transactions }
}

function readOutput(output: string): { transactions: number; failed: number; perSecond: number } {
  const find = (pattern: RegExp) => Number(pattern.exec(output)?.[1])
  return {
    transactions: find(/^number of transactions actually processed: (\d+)/m),
    failed: find(/^number of failed transactions: (\d+)/m),
    perSecond: find(/^tps = ([\d.]+) \(without initial connection time\)/m),
  }
}

/** The third column of the log is the time of a transaction in microseconds. */
async function readPercentiles(folder: string): Promise<[number, number]> {
  const files = (await readdir(folder)).filter((name) => name.startsWith('pgbench.')).map((name) => join(folder, name))
  const texts = await Promise.all(files.map((file) => readFile(file, 'utf8')))
  await Promise.all(files.map((file) => rm(file)))
  const times = texts.flatMap((text) =>
    text
      .trimEnd()
      .split('\n')
      .map((line) => Number(line.split(' ')[2])),
  )
  times.sort((a, b) => a - b)
  const at = (share: number) => (times[Math.floor(times.length * share)] ?? Number.NaN) / 1000
  return [at(0.5), at(0.99)]
}
