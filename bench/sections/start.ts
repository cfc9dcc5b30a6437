import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { median } from '../compare.ts'
import type { Context } from '../context.ts'
import { residentMb, runProgram } from '../processes.ts'

const times = 11

/** How long it takes to be ready, and what it needs when it is idle. */
export async function measureStart(context: Context): Promise<void> {
  const { folder, operator, report, signal } = context
  const empty = join(folder, 'empty-program')
  await Bun.write(`${empty}.ts`, '')
  await runProgram([process.execPath, 'build', '--compile', `${empty}.ts`, `--outfile=${empty}`], {
    cwd: folder,
    signal,
  })

  const settings = { DATA_DIR: join(folder, 'data-again') }
  await timeToServe(context, settings)
  const starts: { empty: Start; onPostgres: Start; first: Start; later: Start }[] = []
  for (let round = 0; round < times; round += 1) {
    starts.push({
      empty: await time(() => runProgram([empty], { cwd: folder, signal })),
      onPostgres: await timeToServe(context),
      first: await timeToServe(context, { DATA_DIR: join(folder, `data-${round}`) }),
      later: await timeToServe(context, settings),
    })
  }

  report.targets.push(
    {
      name: 'start on Postgres ÷ start of an empty program',
      value: median(starts.map(({ onPostgres, empty }) => onPostgres.ms / empty.ms)),
      atMost: 8,
    },
    { name: 'idle memory on Postgres, MB', value: median(starts.map(({ onPostgres }) => onPostgres.mb)), below: 120 },
    {
      name: 'embedded, first start ÷ later start',
      value: median(starts.map(({ first, later }) => first.ms / later.ms)),
      atMost: 2,
    },
    { name: 'idle memory embedded, MB', value: median(starts.map(({ first }) => first.mb)), below: 400 },
    {
      name: 'embedded, later start, ms',
      value: median(starts.map(({ later }) => later.ms)),
      below: Number.POSITIVE_INFINITY,
    },
    {
      name: 'size of the binary, MB',
      value: (await stat(operator.program)).size / 1e6,
      below: Number.POSITIVE_INFINITY,
    },
  )
}

type Start = { ms: number; mb: number }

async function timeToServe(context: Context, settings?: Record<string, string>): Promise<Start> {
  const startedAt = performance.now()
  const server = await context.serve(settings)
  const ms = performance.now() - startedAt
  const mb = await residentMb(server.pid)
  await server.stop()
  return { ms, mb }
}

async function time(work: () => Promise<unknown>): Promise<Start> {
  const startedAt = performance.now()
  await work()
  return { ms: performance.now() - startedAt, mb: 0 }
}
