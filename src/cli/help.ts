import { type Command, nameOf } from './command.ts'
import { parseUsage } from './grammar.ts'
import { groups, loadCommands } from './groups.ts'
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
  const [group] = nameOf(command).split(' ')
  const explain = (key: string) => explanations[`${group} ${key}`] ?? explanations[key] ?? ''
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

/** Names the command nearest to an unknown one. */
export async function adviseInsteadOf(words: string[]): Promise<string> {
  const candidates = [...(await loadCommands()).map(nameOf), ...groups.keys()]
  const nearest = nearestTo(words.slice(0, 2).join(' '), candidates) ?? nearestTo(words[0] ?? '', [...groups.keys()])
  return nearest ? `Did you mean "prompt-signals ${nearest}"?` : 'See "prompt-signals --help".'
}

/** The candidate with the fewest edits from the text; undefined if more than a third of it would change. */
function nearestTo(text: string, candidates: string[]): string | undefined {
  const ranked = candidates.map((candidate) => ({ candidate, distance: editsBetween(text, candidate) }))
  const [nearest] = ranked.sort((a, b) => a.distance - b.distance)
  return nearest && nearest.distance <= Math.max(text.length, nearest.candidate.length) / 3
    ? nearest.candidate
    : undefined
}

/** Levenshtein's distance. */
function editsBetween(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (const [i, letter] of [...a].entries()) {
    const next = [i + 1]
    for (const [j, other] of [...b].entries()) {
      const replaced = (row[j] as number) + (letter === other ? 0 : 1)
      next.push(Math.min(replaced, (row[j + 1] as number) + 1, (next[j] as number) + 1))
    }
    row = next
  }
  return row.at(-1) as number
}
