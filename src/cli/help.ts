import { type Command, nameOf } from './command.ts'
import { parseUsage } from './grammar.ts'
import { loadCommands } from './groups.ts'
import { explanations } from './options.ts'

export const usageOf = ({ usage }: Command) => `usage: prompt-signals ${usage} [--json]\n`

export const listOf = (commands: Command[]) =>
  commands.map(({ usage, description }) => `  ${usage}\n      ${description}\n`).join('')

export const listAll = async (): Promise<string> =>
  `prompt-signals COMMAND\n\n${listOf(await loadCommands())}\nCOMMAND --help explains its options. With --json every ` +
  'result is one JSON object per line. Settings are environment variables.\n'

/** A longer option has a line for itself. */
const maxNameWidth = 28

/** The arguments and options of a command, one per line. */
export function describeOptions(command: Command): string {
  const { options, positionals } = parseUsage(command.usage)
  const name = nameOf(command)
  const [group] = name.split(' ')
  const explain = (key: string) =>
    explanations[`${name} ${key}`] ?? explanations[`${group} ${key}`] ?? explanations[key] ?? ''
  const rows = [
    ...positionals.map((name) => ({ name, text: explain(name) })),
    ...options.map(({ name, value }) => ({ name: `--${name} ${value ?? ''}`.trim(), text: explain(`--${name}`) })),
    { name: '--json', text: explain('--json') },
  ]
  const width = Math.max(...rows.map(({ name }) => (name.length > maxNameWidth ? 0 : name.length)))
  const indent = ' '.repeat(width + 4)
  return rows
    .map(({ name, text }) =>
      name.length > width ? `  ${name}\n${indent}${text}\n` : `  ${name.padEnd(width)}  ${text}\n`,
    )
    .join('')
}
