import { requirePrompt } from '../prompts/find.ts'
import { changePrompt, createPrompt, listAllPrompts } from '../prompts/manage.ts'
import { requiredOption, type Typed, textOption, UsageError } from './command.ts'
import { onDatabase } from './database.ts'

export const promptCommands = onDatabase({
  'prompts create': {
    usage: 'prompts create --org ORG --name N [--id pmt_…] [--repository OWNER/NAME --path P]',
    does: 'makes a prompt known',
    values: ['org', 'name', 'id', 'repository', 'path'],
    required: ['org', 'name'],
    check: fileOption,
    verifyWith: 'prompts list --org ORG',
    async run({ db, clock, typed, output }) {
      const prompt = await createPrompt(db, clock, {
        org: requiredOption(typed, 'org'),
        name: requiredOption(typed, 'name'),
        id: textOption(typed, 'id'),
        file: fileOption(typed),
      })
      output.show(prompt)
    },
  },
  'prompts link': {
    usage: 'prompts link ID --repository OWNER/NAME --path P',
    does: 'says in which file of a repository a prompt is kept',
    values: ['repository', 'path'],
    required: ['repository', 'path'],
    words: 1,
    verifyWith: 'prompts list --org ORG',
    async run({ db, clock, typed, output }) {
      const file = { repository: requiredOption(typed, 'repository'), path: requiredOption(typed, 'path') }
      const prompt = await requirePrompt(db.sql, typed.words[0] as string)
      const { id, ...changed } = await changePrompt(db, clock, prompt, { file })
      output.show({ id, org: prompt.org, ...changed })
    },
  },
  'prompts list': {
    usage: 'prompts list --org ORG',
    does: 'lists the prompts of an organisation, and how their files were last seen',
    values: ['org'],
    required: ['org'],
    async run({ db, typed, output }) {
      const prompts = await listAllPrompts(db, requiredOption(typed, 'org'))
      output.list(prompts, [
        'id',
        'org',
        'name',
        'repository',
        'path',
        'file_state',
        'file_moved_to',
        'last_entry_at',
        'created_at',
      ])
    },
  },
})

function fileOption(typed: Typed): { repository: string; path: string } | null {
  const repository = textOption(typed, 'repository')
  const path = textOption(typed, 'path')
  if (repository !== null && path !== null) return { repository, path }
  if (repository !== null || path !== null) throw new UsageError('--repository and --path belong together')
  return null
}
