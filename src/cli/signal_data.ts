import type { Db } from '../db/client.ts'
import { writeFileAtomically } from '../lib/atomic_file.ts'
import type { Input } from '../lib/input.ts'
import { monthOf } from '../lib/months.ts'
import { counted, number } from '../lib/texts.ts'
import { expectedTime, parseTime } from '../lib/times.ts'
import { listOrganisations, requireOrganisation } from '../orgs/manage.ts'
import { requirePrompt } from '../prompts/find.ts'
import { countSignals, type PurgeSource, purgeSignals } from '../signals/erase.ts'
import { countMatching, type MetadataFilter, purgeMatching } from '../signals/erase_matching.ts'
import { importSignals } from '../signals/import.ts'
import { type Columns, parseLines } from '../signals/import_lines.ts'
import { exportSignals } from '../signals/read.ts'
import { exportParams } from '../signals/schema_params.ts'
import { createSignalRollup } from '../stats/rollup.ts'
import { type Arguments, type Context, splitPair, UsageError } from './command.ts'
import { confirm, requireConsent } from './confirm.ts'
import { onDatabase } from './database.ts'
import { keepLines } from './kept_lines.ts'
import { writeOut } from './output.ts'

export const signalDataCommands = onDatabase([
  {
    usage: 'signals import FILE|- --prompt PROMPT [--column FIELD=COLUMN]… [--positive WORDS]',
    description:
      'imports past signals from the NDJSON or CSV of an export; known signals are skipped, and only ' +
      'those of the current month count towards its limit',
    readsFile: true,
    ifInterrupted: 'Run it again to import the rest.',
    check: parseColumns,
    async run({ db, clock, args, output, progress, input, interruption: { signal } }) {
      const prompt = await requirePrompt(db.sql, args.required('prompt'))
      const columns = parseColumns(args)
      const readLines = await keepLines(args.positional(0), input as Input, signal)
      const now = clock.now()
      const readSignals = () => parseLines(readLines(), now, columns)
      const rollup = createSignalRollup(db, { patienceMs: Number.POSITIVE_INFINITY })
      const counts = await importSignals(db, now, rollup, prompt, readSignals, (done, share) =>
        progress.count(done, 'signals', share),
      )
      const { recorded, known, refused } = counts
      if (args.options.json) output.show(counts)
      else output.say(`recorded ${number(recorded)}, already known ${number(known)}`)
      if (refused > 0) {
        throw new Error(
          `The monthly limit has no room for ${counted(refused, 'signal')} of this month. Raise the limit with ` +
            `"orgs set-plan", or wait until ${monthOf(now).resetsAt}. Then run the import again.`,
        )
      }
    },
  },
  {
    usage:
      'signals export --prompt PROMPT|--org ORG [--format ndjson|csv] [--since TIME] [--until TIME] ' +
      '[--value positive|negative] [--after ID] [--output FILE]',
    description: 'exports signals to standard output, or to a file that appears once it is complete',
    check(args) {
      if (hasOption(args, 'prompt') === hasOption(args, 'org')) throw new UsageError('give either --prompt or --org')
      args.asQuery(exportParams.parse)
    },
    async run({ db, clock, args, output, progress }) {
      let signals = 0
      const fill = async (put: (text: string) => Promise<void>) => {
        const [source] = (await findSources(db, clock, args)) as [PurgeSource]
        for await (const step of exportSignals(db, source, args.asQuery(exportParams.parse))) {
          await put(step.text)
          signals += step.signals
          progress.count(signals, 'signals')
        }
      }
      const file = args.text('output')
      if (file === null) return fill(writeOut)
      await writeFileAtomically(file, fill)
      output.show({ file, signals })
    },
  },
  {
    usage: 'signals purge --before TIME|--metadata FIELD=TEXT --prompt PROMPT|--org ORG|--all-orgs [--dry-run] [--yes]',
    description:
      'permanently erases the signals older than a time, or those of a person by their metadata, after showing their number ' +
      'and asking',
    ifInterrupted: 'Run it again to erase the rest.',
    check(args) {
      const sources = [hasOption(args, 'prompt'), hasOption(args, 'org'), args.options['all-orgs'] === true]
      if (sources.filter(Boolean).length !== 1) throw new UsageError('give one of --prompt, --org and --all-orgs')
      parseWhich(args)
      requireConsent(args)
    },
    async run({ db, clock, args, output, progress, interruption: { signal } }) {
      const { before, metadata } = parseWhich(args)
      const sources = await findSources(db, clock, args)
      let found = 0
      for (const source of sources) {
        found += await (before ? countSignals(db, source, before) : countMatching(db, source, metadata))
      }
      if (args.options['dry-run']) return output.show({ would_erase: found })
      const which = before ? `older than ${before.toISOString()}` : `with ${args.text('metadata')}`
      const what = `${counted(found, 'signal')} ${which}`
      const whose = args.options['all-orgs'] ? counted(sources.length, 'organisation') : sources[0]?.publicId
      await confirm(args, `Permanently erase ${what} of ${whose}?`, signal)
      let erased = 0
      for (const source of sources) {
        const earlier = erased
        const onProgress = (more: number) => progress.count(earlier + more, 'signals erased')
        erased += await (before
          ? purgeSignals(db, clock, source, before, onProgress)
          : purgeMatching(db, clock, source, metadata))
      }
      output.show({ erased })
    },
  },
])

/** Undefined for the file of an export. */
function parseColumns(args: Arguments): Columns | undefined {
  const [given, positive] = [args.list('column'), args.text('positive')]
  if (!given && positive === null) return undefined
  const columnOf = (given ?? []).map((one) => splitPair('column', one, 'FIELD=COLUMN'))
  return { columnOf: new Map(columnOf), positive: positive?.split(',') ?? null }
}

const hasOption = (args: Arguments, name: string): boolean => args.text(name) !== null

/** The prompt or the organisation that the options name; without one, every organisation. */
async function findSources(db: Db, clock: Context['clock'], args: Arguments): Promise<PurgeSource[]> {
  const publicId = args.text('prompt')
  if (publicId !== null) {
    const prompt = await requirePrompt(db.sql, publicId)
    return [{ ...prompt, prompt }]
  }
  const org = args.text('org')
  const orgs = org === null ? (await listOrganisations(db, clock)).map(({ id }) => id) : [org]
  const sources: PurgeSource[] = []
  for (const publicId of orgs) {
    const { organisationId } = await requireOrganisation(db, publicId)
    sources.push({ organisationId, prompt: null, publicId })
  }
  return sources
}

/** What is older than a time, or has a value in its metadata. */
function parseWhich(args: Arguments): { before: Date | null; metadata: MetadataFilter } {
  const [time, filter] = [args.text('before'), args.text('metadata')]
  if ((time === null) === (filter === null)) throw new UsageError('give either --before or --metadata')
  if (filter !== null) return { before: null, metadata: [splitPair('metadata', filter)] }
  const before = parseTime(time as string)
  if (!before) throw new UsageError(`--before must be ${expectedTime}`)
  return { before, metadata: [] }
}
