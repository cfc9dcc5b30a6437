import { createReadStream } from 'node:fs'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { createGunzip, createGzip } from 'node:zlib'
import { createHistoryReader } from '../history/list.ts'
import { parseQuery } from '../history/query.ts'
import { importHistory, recordHistory } from '../history/record.ts'
import { requirePrompt } from '../prompts/find.ts'
import { integerOption, requiredOption, type Typed, textOption } from './command.ts'
import { onDatabase } from './database.ts'

const pullRequestOption = (typed: Typed) => integerOption(typed, 'pr-number', 1)

export const historyCommands = onDatabase({
  'history record': {
    usage:
      'history record --prompt pmt_… --action deployed|pr_opened|pr_merged|pr_closed --user-name N --user-email E ' +
      '--commit-sha S --branch B [--pr-number N] [--pr-url U] [--created-at TIME]',
    does: 'adds one history entry',
    values: [
      'prompt',
      'action',
      'user-name',
      'user-email',
      'commit-sha',
      'branch',
      'pr-number',
      'pr-url',
      'created-at',
    ],
    required: ['prompt', 'action', 'user-name', 'user-email', 'commit-sha', 'branch'],
    check: pullRequestOption,
    async run({ db, clock, typed, output }) {
      const entry = await recordHistory(db, clock, requiredOption(typed, 'prompt'), {
        action: requiredOption(typed, 'action'),
        user: { name: requiredOption(typed, 'user-name'), email: requiredOption(typed, 'user-email') },
        commit_sha: requiredOption(typed, 'commit-sha'),
        branch_name: requiredOption(typed, 'branch'),
        pr_number: pullRequestOption(typed),
        pr_url: textOption(typed, 'pr-url'),
        created_at: textOption(typed, 'created-at') ?? undefined,
      })
      output.show(entry)
    },
  },
  'history import': {
    usage: 'history import FILE|-',
    does: 'adds many entries from JSON lines, all or none of them',
    words: 1,
    async run({ db, clock, typed, output }) {
      const showProgress = (lines: number) => process.stderr.write(`\r${lines} lines read`)
      const onTerminal = process.stderr.isTTY === true
      const [file] = typed.words as [string]
      const lines = readLines(file, file === '-' ? await keepInput() : () => createReadStream(file))
      const imported = await importHistory(db, clock, lines, onTerminal ? showProgress : () => {})
      if (onTerminal) process.stderr.write('\n')
      output.show(imported)
    },
  },
  'history list': {
    usage: 'history list --prompt pmt_… [--page N] [--limit N]',
    does: 'lists the history of a prompt, newest first',
    values: ['prompt', 'page', 'limit'],
    required: ['prompt'],
    async run({ db, typed, output }) {
      const prompt = requiredOption(typed, 'prompt')
      const { organisationId } = await requirePrompt(db.sql, prompt)
      const query = parseQuery(`?${new URLSearchParams(typed.options as Record<string, string>)}`)
      const reader = createHistoryReader(db)
      const { body } = await reader.readPage(await reader.findHistory(organisationId, prompt), query)
      output.list(JSON.parse(body).data, [
        'id',
        'action',
        'user',
        'commit_sha',
        'pr_number',
        'branch_name',
        'created_at',
      ])
    },
  },
})

/** Cut only at line feeds: a text may hold the other characters that end a line for some. */
async function* readLines(file: string, open: () => AsyncIterable<Uint8Array>): AsyncIterable<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let rest = ''
  try {
    for await (const chunk of open()) {
      const lines = (rest + decoder.decode(chunk, { stream: true })).split(/\r?\n/)
      rest = lines.pop() as string
      yield* lines
    }
    yield rest + decoder.decode()
  } catch (error) {
    const reason = error instanceof TypeError ? 'it is not UTF-8' : (error as Error).message
    throw new Error(`${file} cannot be read: ${reason}`)
  }
}

/**
 * All of standard input, kept small in memory until it has ended: as slowly as it may come, the database is not held up
 * meanwhile, which the embedded one would be for everybody.
 */
async function keepInput(): Promise<() => AsyncIterable<Uint8Array>> {
  const gzip = createGzip({ level: 1 })
  const [kept] = await Promise.all([buffer(gzip), pipeline(process.stdin, gzip)])
  return () => Readable.from([kept]).pipe(createGunzip())
}
