import { forgetTexts } from '../history/erase.ts'
import { counted, oneLine } from '../lib/texts.ts'
import { erasePrompt } from '../prompts/erase.ts'
import { listAllPrompts, requirePrompt, showPrompt } from '../prompts/find.ts'
import { changePrompt, createPrompt } from '../prompts/manage.ts'
import { promptParams } from '../prompts/schema.ts'
import { countSignals } from '../signals/erase.ts'
import { type Arguments, UsageError } from './command.ts'
import { hasConsent, requireConsent } from './confirm.ts'
import { type DatabaseContext, onDatabase } from './database.ts'

export const commands = onDatabase([
  {
    usage: 'prompts create --org ORG --name N [--id pmt_…] [--repository REPOSITORY --path P]',
    description: 'registers a prompt',
    verifyWith: 'prompts list --org ORG',
    async run({ db, clock, args, output }) {
      const [org, name, id] = [args.required('org'), args.required('name'), args.text('id')]
      output.show(await createPrompt(db, clock, { org, name, id, file: fileOption(args) }))
    },
  },
  {
    usage: 'prompts link PROMPT --repository REPOSITORY --path P',
    description: 'links a prompt to its file in a repository',
    verifyWith: 'prompts list --org ORG',
    run: (context) => change(context, { file: fileOption(context.args) }),
  },
  {
    usage: 'prompts update PROMPT [--name N] [--live-branch B]',
    description: 'renames a prompt, or sets the branch whose entries are changes ("" for every branch)',
    check: updateOptions,
    verifyWith: 'prompts list --org ORG',
    run: (context) => change(context, updateOptions(context.args)),
  },
  {
    usage: 'prompts list --org ORG [--archived false|true|all]',
    description: 'lists the prompts of an organisation, and how their files were last seen',
    check: (args) => args.asQuery(promptParams.parse),
    async run({ db, args, output }) {
      const { archived } = args.asQuery(promptParams.parse)
      const prompts = await listAllPrompts(db, args.required('org'), archived)
      const file = ['repository…', 'path…', 'file_state…', 'file_moved_to…', 'live_branch…'] as const
      output.table(prompts, ['id', 'name…', ...file, 'archived', 'last_entry_at'])
    },
  },
  {
    usage: 'prompts archive PROMPT',
    description: 'hides a prompt from lists; it still records',
    verifyWith: 'prompts list --org ORG --archived all',
    run: (context) => change(context, { archived: true }),
  },
  {
    usage: 'prompts unarchive PROMPT',
    description: 'shows an archived prompt in lists again',
    verifyWith: 'prompts list --org ORG --archived all',
    run: (context) => change(context, { archived: false }),
  },
  {
    usage: 'prompts forget-text PROMPT',
    description: 'permanently erases the stored texts of a prompt',
    ifPartlyDone: 'some texts are erased; run it again to erase the rest',
    verifyWith: 'history show ID --diff',
    async run({ db, clock, args, output }) {
      const id = args.positional(0)
      const entries = await forgetTexts(db, clock, await requirePrompt(db.sql, id))
      output.show({ id, entries })
    },
  },
  {
    usage: 'prompts erase PROMPT [--yes]',
    description: 'permanently erases a prompt with its signals, history and texts, after asking',
    ifPartlyDone: 'the prompt is archived and partly erased; run it again to erase the rest',
    verifyWith: 'prompts list --org ORG --archived all',
    check: requireConsent,
    async run({ db, clock, args, output, progress, interruption: { signal } }) {
      const id = args.positional(0)
      const prompt = await requirePrompt(db.sql, id)
      const { name } = await showPrompt(db, prompt)
      const signals = counted(await countSignals(db, { ...prompt, prompt }), 'signal')
      const question = `Permanently erase the prompt ${oneLine(name)} (${id}) with its history and ${signals}?`
      if (!(await hasConsent(args, question, signal))) throw new Error('Nothing was erased.')
      await erasePrompt(db, clock, prompt, (erased) => progress.count(erased, 'signals erased'))
      output.show({ erased: id })
    },
  },
])

type Change = Parameters<typeof changePrompt>[3]

function updateOptions(args: Arguments): Change {
  const [name, branch] = [args.text('name'), args.text('live-branch')]
  if (name === null && branch === null) throw new UsageError('give --name or --live-branch')
  return { ...(name !== null && { name }), ...(branch !== null && { liveBranch: branch || null }) }
}

async function change({ db, clock, args, output }: DatabaseContext, given: Change): Promise<void> {
  const prompt = await requirePrompt(db.sql, args.positional(0))
  const { id, ...changed } = await changePrompt(db, clock, prompt, given)
  output.show({ id, org: prompt.org, ...changed })
}

/** The usage line requires both options or none. */
function fileOption(args: Arguments): { repository: string; path: string } | null {
  const [repository, path] = [args.text('repository'), args.text('path')]
  return repository !== null && path !== null ? { repository, path } : null
}
