import { operator } from '../audit/record.ts'
import { ServiceError } from '../errors.ts'
import { removeEntry } from '../history/erase.ts'
import { importHistory } from '../history/import.ts'
import { createHistoryReader, findEntry } from '../history/read.ts'
import { recordEntry } from '../history/record.ts'
import { diffParams, parseHistoryQuery } from '../history/schema_params.ts'
import type { Input } from '../lib/input.ts'
import { parseId } from '../lib/params.ts'
import { requirePrompt } from '../prompts/find.ts'
import { type Arguments, UsageError } from './command.ts'
import { onDatabase } from './database.ts'
import { keepLines } from './kept_lines.ts'

const columns = ['id', 'action', 'user…', 'commit_sha…', 'pr_number', 'branch_name…', 'created_at', 'title…']

const pullRequestOption = (args: Arguments) => args.integer('pr-number', 1)

export const commands = onDatabase([
  {
    usage:
      'history record --prompt PROMPT --action deployed|pr_opened|pr_merged|pr_closed --user-name N --user-email E ' +
      '--commit-sha S --branch B [--pr-number N] [--pr-url U] [--title T] [--created-at TIME]',
    description: 'adds one history entry',
    check: pullRequestOption,
    verifyWith: 'history list --prompt PROMPT',
    async run({ db, clock, args, output }) {
      const prompt = await requirePrompt(db.sql, args.required('prompt'))
      const { entry } = await recordEntry(db, clock, prompt, {
        action: args.required('action'),
        user: { name: args.required('user-name'), email: args.required('user-email') },
        commit_sha: args.required('commit-sha'),
        branch_name: args.required('branch'),
        pr_number: pullRequestOption(args),
        pr_url: args.text('pr-url'),
        title: args.text('title'),
        created_at: args.given('created-at'),
      })
      output.show(entry)
    },
  },
  {
    usage: 'history import FILE|-',
    description: 'adds many entries from JSON lines, all or none of them',
    readsFile: true,
    ifInterrupted: 'nothing was recorded',
    verifyWith: 'history list --prompt PROMPT',
    async run({ db, clock, args, output, progress, input, interruption: { signal } }) {
      const readLines = await keepLines(args.positional(0), input as Input, signal)
      const counts = await importHistory(db, clock, readLines, (lines, state, share) =>
        progress.count(lines, `lines ${state}`, share),
      )
      if (args.options.json) output.show(counts)
      else output.say(`recorded ${counts.recorded}, already known ${counts.known}`)
    },
  },
  {
    usage: 'history list --prompt PROMPT [--page N] [--limit N]',
    description: 'lists the history of a prompt, newest first',
    check: listQuery,
    async run({ db, args, output }) {
      const prompt = args.required('prompt')
      const { organisationId } = await requirePrompt(db.sql, prompt)
      const reader = createHistoryReader(db)
      const { body } = await reader.readPage(await reader.findHistory(organisationId, prompt), listQuery(args))
      output.table<Record<string, object>>(JSON.parse(body).data, columns)
    },
  },
  {
    usage: 'history show ID [--diff] [--base ID]',
    description: 'shows a history entry; --diff also what it did to the text, against the change before or --base',
    check: entryOptions,
    async run({ db, args, output }) {
      const { id, base } = entryOptions(args)
      const found = await findEntry(db.sql, id)
      if (!found) throw new ServiceError('not_found', `There is no history entry ${id}.`)
      const { readDiff } = await import('../history/diff.ts')
      const compared = await readDiff(db.sql, found.prompt, found.name, id, base)
      output.show(args.options.json && args.options.diff ? compared : compared.entry)
      if (args.options.json || !args.options.diff) return
      output.text(compared.diff ?? 'The text of this change, or of the one before it, is not stored.\n')
    },
  },
  {
    usage: 'history remove ID --prompt PROMPT',
    description: 'removes a history entry that is wrong',
    check: entryArgument,
    verifyWith: 'history list --prompt PROMPT',
    async run({ db, clock, args, output }) {
      const id = entryArgument(args)
      await removeEntry(db, clock, await requirePrompt(db.sql, args.required('prompt')), id, operator)
      output.show({ id })
    },
  },
])

function listQuery(args: Arguments) {
  return args.asQuery((given) => parseHistoryQuery(`?${given}&include=title`))
}

function entryOptions(args: Arguments): { id: number; base: number | null } {
  return { id: entryArgument(args), ...args.asQuery(diffParams.parse) }
}

function entryArgument(args: Arguments): number {
  const id = parseId(args.positional(0))
  if (id === undefined) throw new UsageError('ID must be the number of a history entry')
  return id
}
