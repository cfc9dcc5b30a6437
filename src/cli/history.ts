import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import { createHistoryReader } from '../history/list.ts'
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
      const lines = readLines(typed.words[0] as string)
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
      await requirePrompt(db.sql, prompt)
      const query = new URLSearchParams(typed.options as Record<string, string>)
      const { body } = await createHistoryReader(db).readPage(prompt, 0, query.toString())
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

async function* readLines(file: string): AsyncIterable<string> {
  const input = file === '-' ? process.stdin : createReadStream(file)
  let isFirst = true
  try {
    for await (const line of createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })) {
      // Programs on Windows begin a file with a byte order mark, which is no part of its text.
      yield isFirst ? line.replace(/^\uFEFF/, '') : line
      isFirst = false
    }
  } catch (error) {
    throw new Error(`${file} cannot be read: ${(error as Error).message}`)
  }
}
