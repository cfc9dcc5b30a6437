import { forgetTexts } from '../history/erase.ts'
import { counted, oneLine } from '../lib/texts.ts'
import { erasePrompt } from '../prompts/erase.ts'
import { requirePrompt, showPrompt } from '../prompts/find.ts'
import { promptOperations } from '../prompts/operations.ts'
import { countSignals } from '../signals/erase.ts'
import { confirm, requireConsent } from './confirm.ts'
import { onDatabase } from './database.ts'
import { fromOperations } from './operation_command.ts'

const columns = [
  ...['id', 'name…', 'repository…', 'path…', 'file_state…', 'file_moved_to…', 'live_branch…'],
  ...['archived', 'last_entry_at'],
]

const operationCommands = fromOperations(promptOperations, [
  {
    usage: 'prompts create --org ORG|--url URL --name N [--id pmt_…] [--repository REPOSITORY --path P]',
    description: 'registers a prompt',
    operation: 'createPrompt',
  },
  {
    usage: 'prompts link PROMPT [--url URL] --repository REPOSITORY --path P',
    description: 'links a prompt to its file in a repository',
    operation: 'changePrompt',
  },
  {
    usage: 'prompts update PROMPT [--url URL] [--name N] [--live-branch B|""]',
    description: 'renames a prompt, or sets the branch whose entries are changes ("" for every branch)',
    operation: 'changePrompt',
  },
  {
    usage: 'prompts list --org ORG|--url URL [--archived false|true|all]',
    description: 'lists the prompts of an organisation, and how their files were last seen',
    operation: 'listPrompts',
    showsAll: true,
    columns,
  },
  {
    usage: 'prompts archive PROMPT [--url URL]',
    description: 'hides a prompt from lists; it still records',
    operation: 'changePrompt',
    defaults: { archived: true },
  },
  {
    usage: 'prompts unarchive PROMPT [--url URL]',
    description: 'shows an archived prompt in lists again',
    operation: 'changePrompt',
    defaults: { archived: false },
  },
  {
    usage: 'repositories list --org ORG|--url URL',
    description: 'lists the repositories that prompts are linked to',
    operation: 'listRepositories',
    columns: ['repository', 'prompts'],
  },
  {
    usage: 'repositories rename OLD NEW --org ORG|--url URL',
    description: 'moves the links of all prompts, after a repository was renamed or moved to another host',
    operation: 'renameRepository',
  },
])

const databaseCommands = onDatabase([
  {
    usage: 'prompts forget-text PROMPT',
    description: 'permanently erases the stored texts of a prompt',
    ifInterrupted: 'Run it again to erase the rest.',
    async run({ db, clock, args, output }) {
      const id = args.positional(0)
      const entries = await forgetTexts(db, clock, await requirePrompt(db.sql, id))
      output.show({ id, entries })
    },
  },
  {
    usage: 'prompts erase PROMPT [--yes]',
    description: 'permanently erases a prompt with its signals, history and texts, after asking',
    ifInterrupted: 'Run it again to erase the rest.',
    check: requireConsent,
    async run({ db, clock, args, output, progress, interruption: { signal } }) {
      const id = args.positional(0)
      const prompt = await requirePrompt(db.sql, id)
      const { name } = await showPrompt(db, prompt)
      const signals = counted(await countSignals(db, { ...prompt, prompt }), 'signal')
      const question = `Permanently erase the prompt ${oneLine(name)} (${id}) with its history and ${signals}?`
      await confirm(args, question, signal)
      await erasePrompt(db, clock, prompt, (erased) => progress.count(erased, 'signals erased'))
      output.show({ erased: id })
    },
  },
])

export const commands = [...operationCommands, ...databaseCommands]
