import { addAbortSignal, Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { createGunzip, createGzip } from 'node:zlib'
import { importHistory } from '../history/import.ts'
import { parseHistoryQuery } from '../history/query.ts'
import { createHistoryReader } from '../history/read.ts'
import { recordHistory } from '../history/record.ts'
import type { Input } from '../lib/input.ts'
import { readLines } from '../lib/lines.ts'
import { requirePrompt } from '../prompts/find.ts'
import type { Arguments } from './arguments.ts'
import { onDatabase } from './database.ts'

const columns = ['id', 'action', 'user', 'commit_sha', 'pr_number', 'branch_name', 'created_at']

const pullRequestOption = (args: Arguments) => args.integer('pr-number', 1)

export const commands = onDatabase([
  {
    usage:
      'history record --prompt pmt_… --action deployed|pr_opened|pr_merged|pr_closed --user-name N --user-email E ' +
      '--commit-sha S --branch B [--pr-number N] [--pr-url U] [--created-at TIME]',
    description: 'adds one history entry',
    check: pullRequestOption,
    verifyWith: 'history list --prompt pmt_…',
    async run({ db, clock, args, output }) {
      const entry = await recordHistory(db, clock, args.required('prompt'), {
        action: args.required('action'),
        user: { name: args.required('user-name'), email: args.required('user-email') },
        commit_sha: args.required('commit-sha'),
        branch_name: args.required('branch'),
        pr_number: pullRequestOption(args),
        pr_url: args.text('pr-url'),
        created_at: args.text('created-at') ?? undefined,
      })
      output.show(entry)
    },
  },
  {
    usage: 'history import FILE|-',
    description: 'adds many entries from JSON lines, all or none of them',
    readsFile: true,
    ifInterrupted: 'nothing was recorded',
    verifyWith: 'history list --prompt pmt_…',
    async run({ db, clock, args, output, progress, input, interruption: { signal } }) {
      const file = args.positional(0)
      const { stream, size } = input as Input
      const bytes = size === undefined ? await keepInput(file, stream, signal) : addAbortSignal(signal, stream)
      const lines = linesOf(file, bytes, (count) => progress.begin(`${count} lines read, adding them to the history`))
      output.show(await importHistory(db, clock, lines, (count) => progress.count(count, 'lines read')))
    },
  },
  {
    usage: 'history list --prompt pmt_… [--page N] [--limit N]',
    description: 'lists the history of a prompt, newest first',
    async run({ db, args, output }) {
      const prompt = args.required('prompt')
      const { organisationId } = await requirePrompt(db.sql, prompt)
      const query = args.asQuery((given) => parseHistoryQuery(`?${given}`))
      const reader = createHistoryReader(db)
      const { body } = await reader.readPage(await reader.findHistory(organisationId, prompt), query)
      output.table<Record<string, object>>(JSON.parse(body).data, columns)
    },
  },
])

/** Names the file in every error, and calls `onEnd` with the number of lines after the last one. */
async function* linesOf(
  file: string,
  bytes: AsyncIterable<Uint8Array>,
  onEnd: (count: number) => void,
): AsyncIterable<string> {
  let count = 0
  try {
    for await (const line of readLines(bytes)) {
      count += 1
      yield line
    }
  } catch (error) {
    throw unreadable(file, error)
  }
  onEnd(count)
}

const unreadable = (file: string, error: unknown) => new Error(`${file} cannot be read: ${(error as Error).message}`)

/**
 * Reads all of a pipe or a terminal and keeps it compressed in memory, before a transaction is begun: however slowly the input
 * comes, it holds no locks, nor the one connection of the embedded database.
 */
async function keepInput(file: string, input: Readable, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
  const gzip = createGzip({ level: 1 })
  const [kept] = await Promise.all([buffer(gzip), pipeline(input, gzip, { signal })]).catch((error) => {
    throw unreadable(file, error)
  })
  return Readable.from([kept]).pipe(createGunzip())
}
