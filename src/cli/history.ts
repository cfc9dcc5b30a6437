import { ServiceError } from '../errors.ts'
import { importHistory } from '../history/import.ts'
import { historyOperations } from '../history/operations.ts'
import { findEntry } from '../history/read.ts'
import { diffParams } from '../history/schema_params.ts'
import { nameAuthors } from '../impact/sentence.ts'
import type { Input } from '../lib/input.ts'
import { parseId } from '../lib/params.ts'
import { showNumber } from '../lib/repository_links.ts'
import { dataOf } from '../lib/rest.ts'
import { number } from '../lib/texts.ts'
import { openLocal } from './api.ts'
import { type Arguments, type Command, UsageError } from './command.ts'
import { onDatabase } from './database.ts'
import { keepLines } from './kept_lines.ts'
import { fromOperations } from './operation_command.ts'

const operationCommands = fromOperations(historyOperations, [
  {
    usage:
      'history record --prompt PROMPT [--url URL] --action deployed|pr_opened|pr_merged|pr_closed --user-name N ' +
      '--user-email E --commit-sha S --branch B [--pr-number N] [--pr-url U] [--title T] [--created-at TIME]',
    description: 'adds one history entry',
    operation: 'recordPromptHistory',
  },
  {
    usage: 'history list --prompt PROMPT [--url URL] [--page N] [--limit N]',
    description: 'lists the history of a prompt, newest first',
    operation: 'getPromptHistory',
    defaults: { include: 'title' },
    columns: [
      ...['id', 'action'],
      { name: 'by', cell: nameAuthors, shrinks: true },
      'commit_sha…',
      { name: 'request', cell: (entry) => (entry.pr_number === null ? '-' : showNumber(entry)) },
      ...['branch_name…', 'created_at', 'title…'],
    ],
  },
])

const removal = {
  usage:
    'history remove [ID] [--org ORG|--url URL] [--prompt PROMPT] [--branch B] [--repository REPOSITORY --path P] [--dry-run]',
  description: 'removes a wrong entry of a prompt, or those of a branch or of a file that a prompt was linked to',
}
const [removeOne, removeMany] = fromOperations(historyOperations, [
  { ...removal, operation: 'removeHistoryEntry', check: checkOne },
  { ...removal, operation: 'removeHistoryEntries' },
]) as [Command, Command]
const removeCommandOf = (args: Arguments) => (args.place('ID') === null ? removeMany : removeOne)
const removeCommand: Command = {
  ...removal,
  check: (args) => removeCommandOf(args).check?.(args),
  run: (context) => removeCommandOf(context.args).run(context),
}

type Compared = { entry: Record<string, string>; diff: string | null }

const databaseCommands = onDatabase([
  {
    usage: 'history import FILE|-',
    description: 'adds many entries from JSON lines, all or none of them',
    readsFile: true,
    async run({ db, clock, args, output, progress, input, interruption: { signal } }) {
      const readLines = await keepLines(args.positional(0), input as Input, signal)
      const counts = await importHistory(db, clock, readLines, (lines, state, share) =>
        progress.count(lines, `lines ${state}`, share),
      )
      if (args.options.json) output.show(counts)
      else output.say(`recorded ${number(counts.recorded)}, already known ${number(counts.known)}`)
    },
  },
  {
    usage: 'history show ID [--diff] [--base ID]',
    description: 'shows a history entry; --diff also what it did to the text, against the change before or --base',
    check: entryArgument,
    async run(context) {
      const { db, args, output } = context
      const id = entryArgument(args)
      const prompt = await findEntry(db.sql, id)
      if (!prompt) throw new ServiceError('not_found', `There is no history entry ${id}.`)
      const base = args.text('base')
      const path = `/prompts/${prompt.publicId}/history/${id}/diff${base === null ? '' : `?base=${base}`}`
      const call = await openLocal(context, prompt, historyOperations)
      const compared = dataOf<Compared>(await call('GET', path))
      output.show(args.options.json && args.options.diff ? compared : compared.entry)
      if (args.options.json || !args.options.diff) return
      output.text(
        compared.diff ?? 'The text of this change, or of the one before it, is not stored: run sync with --text.\n',
      )
    },
  },
])

export const commands = [...operationCommands, removeCommand, ...databaseCommands]

function checkOne(args: Arguments): void {
  entryArgument(args)
  const others = ['branch', 'repository', 'dry-run'].filter((name) => args.options[name] !== undefined)
  if (others.length > 0) throw new UsageError(`give either ID or --${others[0]}`)
  if (args.text('prompt') === null) throw new UsageError('--prompt missing')
}

function entryArgument(args: Arguments): number {
  args.asQuery(diffParams.parse)
  const id = parseId(args.positional(0))
  if (id === undefined) throw new UsageError('ID must be the number of a history entry')
  return id
}
