// A fault named "nothing", for a long time: commands beside the load, and memory and open files that must stay flat.
import { mkdtempSync, readdirSync, readlinkSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { residentMb } from '../../bench/processes.ts'
import { runForOne } from '../binary.ts'
import { compare, type Findings } from './audit.ts'
import type { Fault } from './faults.ts'
import { hasFailed, repeat } from './load.ts'
import type { RunningReplica, System } from './system.ts'

/** Few, so that ten minutes of their signals can be checked. */
export const SOAK_CLIENTS = 24
const COMMANDS_EVERY_MS = 5_000
const SAMPLE_MS = 500
/** What the last quarter may have more than the second one: the first is for the caches to fill. */
const MAX_GROWTH = { mb: 24, share: 0.1, files: 8 }

type Sample = { mb: number; files: number }

export const createSoak = (seconds: number): Fault<System> => ({
  name: `nothing for ${seconds} s: no request fails, nothing grows`,
  async inject(system) {
    const { ledger, replicas, settings, author } = system
    const first = ledger.attempts.length
    const folder = mkdtempSync(join(tmpdir(), 'ps-soak-'))
    const samples = replicas.map((): Sample[] => [])
    const sampling = repeat(async () => {
      for (const [index, replica] of replicas.entries()) samples[index]?.push(await measure(replica))
    }, SAMPLE_MS)
    const commanding = repeat(async (round) => {
      const one = (...args: string[]) => runForOne(args, settings)
      const { id = '' } = await one('keys', 'create', '--org', author.org, '--name', `round ${round}`)
      await one('keys', 'revoke', id)
      await one('orgs', 'set-plan', author.org, round % 2 ? 'team' : 'business', '--monthly-limit', '2000000000')
      if (round % 6 === 0) await one('backup', join(folder, 'backup'))
    }, COMMANDS_EVERY_MS)
    await Bun.sleep(seconds * 1_000)
    await Promise.all([sampling.stop(), commanding.stop()])
    rmSync(folder, { recursive: true, force: true })
    return () => {
      const grown = replicas.map((replica, index) => checkGrowth(replica, samples[index] ?? []))
      const problems = grown.flatMap((one) => one.problems)
      const failed = ledger.attempts.slice(first).filter(hasFailed)
      compare(problems, 'requests failed', [], failed.slice(0, 3))
      return { figures: grown.map(({ figures }) => figures).join('; '), problems }
    }
  },
})

const measure = async ({ server: { pid } }: RunningReplica): Promise<Sample> => ({
  mb: await residentMb(pid),
  files: countOpenFiles(`/proc/${pid}/fd`),
})

/** Without the tables of the embedded engine, which opens and closes them as it needs them: each counts from the second time. */
function countOpenFiles(folder: string): number {
  const open = readdirSync(folder).flatMap((descriptor) => {
    try {
      return readlinkSync(join(folder, descriptor))
    } catch {
      // Closed meanwhile.
      return []
    }
  })
  return open.length - new Set(open.filter((path) => path.includes('/pgdata/base/'))).size
}

function checkGrowth({ name }: RunningReplica, samples: Sample[]): Findings {
  const quarter = (nth: number) => samples.slice((samples.length * nth) / 4, (samples.length * (nth + 1)) / 4)
  const medians = (of: (sample: Sample) => number) =>
    [0, 1, 2, 3].map((nth) => {
      const sorted = quarter(nth)
        .map(of)
        .sort((a, b) => a - b)
      return Math.round(sorted[sorted.length >> 1] ?? 0)
    }) as [number, number, number, number]
  const mb = medians((sample) => sample.mb)
  const files = medians((sample) => sample.files)
  const problems: string[] = []
  if (mb[3] > mb[1] * (1 + MAX_GROWTH.share) + MAX_GROWTH.mb) problems.push(`memory grew from ${mb[1]} to ${mb[3]} MB`)
  if (files[3] > files[1] + MAX_GROWTH.files) problems.push(`open files grew from ${files[1]} to ${files[3]}`)
  return { figures: `${name}: memory in MB by quarters ${mb.join(', ')}, open files ${files.join(', ')}`, problems }
}
