import { requirePrompt } from '../prompts/find.ts'
import { changePrompt, createPrompt, listAllPrompts } from '../prompts/manage.ts'
import { type Arguments, UsageError } from './command.ts'
import { onDatabase } from './database.ts'

export const commands = onDatabase([
  {
    usage: 'prompts create --org ORG --name N [--id pmt_…] [--repository REPOSITORY --path P]',
    description: 'registers a prompt',
    check: fileOption,
    verifyWith: 'prompts list --org ORG',
    async run({ db, clock, args, output }) {
      const [org, name, id] = [args.required('org'), args.required('name'), args.text('id')]
      output.show(await createPrompt(db, clock, { org, name, id, file: fileOption(args) }))
    },
  },
  {
    usage: 'prompts link ID --repository REPOSITORY --path P',
    description: 'links a prompt to its file in a repository',
    verifyWith: 'prompts list --org ORG',
    async run({ db, clock, args, output }) {
      const prompt = await requirePrompt(db.sql, args.positional(0))
      const { id, ...changed } = await changePrompt(db, clock, prompt, { file: fileOption(args) })
      output.show({ id, org: prompt.org, ...changed })
    },
  },
  {
    usage: 'prompts update ID [--name N] [--live-branch B]',
    description: 'renames a prompt, or sets the branch whose entries are changes ("" for every branch)',
    check: updateOptions,
    verifyWith: 'prompts list --org ORG',
    async run({ db, clock, args, output }) {
      const prompt = await requirePrompt(db.sql, args.positional(0))
      const { id, ...changed } = await changePrompt(db, clock, prompt, updateOptions(args))
      output.show({ id, org: prompt.org, ...changed })
    },
  },
  {
    usage: 'prompts list --org ORG',
    description: 'lists the prompts of an organisation, and how their files were last seen',
    async run({ db, args, output }) {
      const file = ['repository', 'path', 'file_state', 'file_moved_to'] as const
      const prompts = await listAllPrompts(db, args.required('org'))
      output.table(prompts, ['id', 'org', 'name', ...file, 'live_branch', 'last_entry_at', 'created_at'])
    },
  },
])

function updateOptions(args: Arguments): { name?: string; liveBranch?: string | null } {
  const [name, branch] = [args.text('name'), args.text('live-branch')]
  if (name === null && branch === null) throw new UsageError('give --name or --live-branch')
  return { ...(name !== null && { name }), ...(branch !== null && { liveBranch: branch || null }) }
}

function fileOption(args: Arguments): { repository: string; path: string } | null {
  const [repository, path] = [args.text('repository'), args.text('path')]
  if (repository !== null && path !== null) return { repository, path }
  if (repository !== null || path !== null) throw new UsageError('--repository and --path belong together')
  return null
}
