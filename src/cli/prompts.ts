import { createPrompt, listPrompts } from '../prompts/manage.ts'
import { type DatabaseCommand, requiredOption, textOption } from './command.ts'

export const promptCommands: Record<string, DatabaseCommand> = {
  'prompts create': {
    usage: 'prompts create --org ORG --name N [--id pmt_…]',
    does: 'makes a prompt known',
    values: ['org', 'name', 'id'],
    required: ['org', 'name'],
    async run({ db, clock, typed, output }) {
      const prompt = await createPrompt(db, clock, {
        org: requiredOption(typed, 'org'),
        name: requiredOption(typed, 'name'),
        id: textOption(typed, 'id'),
      })
      output.show(prompt)
    },
  },
  'prompts list': {
    usage: 'prompts list --org ORG',
    does: 'lists the prompts of an organisation',
    values: ['org'],
    required: ['org'],
    async run({ db, typed, output }) {
      output.list(await listPrompts(db, requiredOption(typed, 'org')), ['id', 'org', 'name'])
    },
  },
}
