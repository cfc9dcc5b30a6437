import type { Db } from '../db/client.ts'
import { writeFileAtomically } from '../lib/atomic_file.ts'
import { expectedTime, parseTime } from '../lib/times.ts'
import { listOrganisations, requireOrganisation } from '../orgs/manage.ts'
import { requirePrompt } from '../prompts/find.ts'
import { type PurgeSource, purgeSignals } from '../signals/erase.ts'
import { type ExportSource, exportSignals, parseExportQuery } from '../signals/export.ts'
import {
  type Commands,
  type Context,
  requiredOption,
  type Typed,
  textOption,
  UsageError,
  withUsageErrors,
} from './command.ts'
import { forCommands, onDatabase, withDatabase } from './database.ts'
import { untilInterrupted } from './interruption.ts'
import { createProgress } from './progress.ts'

const filters = ['format', 'since', 'until', 'value', 'after']

/** Commands that take signals out of the database: into a file, or for good. */
export const signalDataCommands: Commands = {
  'signals export': {
    usage:
      'signals export --prompt pmt_…|--org ORG [--format ndjson|csv] [--since TIME] [--until TIME] ' +
      '[--value positive|negative] [--after ID] [--output FILE]',
    does: 'writes signals to standard output, or to a file, which is there once it is whole',
    values: ['prompt', 'org', 'output', ...filters],
    ifInterrupted: 'what was written to standard output is not whole, and no file was made',
    check(typed) {
      if (hasOption(typed, 'prompt') === hasOption(typed, 'org')) throw new UsageError('give either --prompt or --org')
      parseExportOptions(typed)
    },
    run: runExport,
  },
  ...onDatabase({
    'signals purge': {
      usage: 'signals purge --before TIME [--prompt pmt_…|--org ORG]',
      does: 'erases the signals from before a time for good: of a prompt, of an organisation, or of all',
      values: ['before', 'prompt', 'org'],
      required: ['before'],
      ifInterrupted: 'what was erased by then is gone, and the rest is there; run it again to go on',
      verifyWith: 'signals export --org ORG --until TIME',
      check(typed) {
        if (hasOption(typed, 'prompt') && hasOption(typed, 'org')) throw new UsageError('give --prompt or --org')
        parseBefore(typed)
      },
      async run({ db, clock, typed, output }) {
        const progress = createProgress()
        let erased = 0
        try {
          for (const source of await findPurgeSources(db, clock, typed)) {
            const before = erased
            const onProgress = (more: number) => progress.count(before + more, 'signals erased')
            erased += await purgeSignals(db, clock, source, parseBefore(typed), onProgress)
          }
        } finally {
          progress.end()
        }
        output.show({ erased })
      },
    },
  }),
}

const hasOption = (typed: Typed, name: string): boolean => textOption(typed, name) !== null

/** The file is opened before the database: after that, a command of root's has only the rights of the data's owner. */
async function runExport(context: Context): Promise<void> {
  const { typed, output, config, interruption } = context
  const file = textOption(typed, 'output')
  const progress = createProgress()
  let signals = 0
  const fill = async (put: (text: string) => Promise<void>) => {
    const { openDatabase } = await import('../db/open.ts')
    const opening = untilInterrupted(interruption, openDatabase(config, forCommands), 0)
    await withDatabase(context, opening, async (db) => {
      for await (const step of exportSignals(db, await findExportSource(db, typed), parseExportOptions(typed))) {
        await put(step.text)
        signals += step.signals
        progress.count(signals, 'signals')
      }
    })
  }
  try {
    if (file === null) return await fill(putOut)
    await writeFileAtomically(file, fill)
    progress.end()
    output.show({ file, signals })
  } finally {
    progress.end()
  }
}

/** Waits for a slow reader of standard output. */
function putOut(text: string): Promise<void> {
  // Each write reports its own failure; without a listener the error event would end the process.
  if (process.stdout.listenerCount('error') === 0) process.stdout.on('error', () => {})
  return new Promise((resolve, reject) =>
    process.stdout.write(text, (error) =>
      error ? reject(new Error(`It cannot be written: ${error.message}`)) : resolve(),
    ),
  )
}

function parseExportOptions({ options }: Typed) {
  const given = Object.entries(options).filter(([name]) => filters.includes(name)) as [string, string][]
  return withUsageErrors(() => parseExportQuery(new URLSearchParams(given)))
}

async function findExportSource(db: Db, typed: Typed): Promise<ExportSource> {
  const publicId = textOption(typed, 'prompt')
  if (publicId === null) {
    const { id } = await requireOrganisation(db, requiredOption(typed, 'org'))
    return { organisationId: id, prompt: null }
  }
  const { id, organisationId } = await requirePrompt(db.sql, publicId)
  return { organisationId, prompt: { id, publicId } }
}

async function findPurgeSources(db: Db, clock: Context['clock'], typed: Typed): Promise<PurgeSource[]> {
  const prompt = textOption(typed, 'prompt')
  if (prompt !== null) {
    const { id, organisationId } = await requirePrompt(db.sql, prompt)
    return [{ organisationId, promptId: id, publicId: prompt }]
  }
  const org = textOption(typed, 'org')
  const orgs = org === null ? (await listOrganisations(db, clock)).map(({ id }) => id) : [org]
  const sources: PurgeSource[] = []
  for (const publicId of orgs) {
    const { id } = await requireOrganisation(db, publicId)
    sources.push({ organisationId: id, promptId: null, publicId })
  }
  return sources
}

function parseBefore(typed: Typed): Date {
  const before = parseTime(requiredOption(typed, 'before'))
  if (!before) throw new UsageError(`--before must be ${expectedTime}`)
  return before
}
