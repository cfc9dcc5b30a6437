import { parseArgs } from 'node:util'
import { type Config, readConfig } from '../config.ts'
import { type Command, type Typed, textOption, UsageError } from './command.ts'

/** Parses what follows the name of a command; throws UsageError before anything is opened for the command. */
export function parseArguments(command: Command, args: string[]): Typed {
  const { values = [], flags = [], required = [], repeatable = [], words = 0, optionalWords = 0 } = command
  const options = Object.fromEntries([
    ...values.map((name) => [name, { type: 'string' as const, multiple: repeatable.includes(name) }]),
    ...[...flags, 'json'].map((name) => [name, { type: 'boolean' as const }]),
    ['help', { type: 'boolean' as const, short: 'h' }],
  ])
  const typed = parse(joinNegativeNumbers(args, values), options)
  if (typed.options.help) return typed
  const missing = required.filter((name) => typed.options[name] === undefined)
  if (missing.length > 0) throw new UsageError(`${missing.map((name) => `--${name}`).join(', ')} missing`)
  const most = words + optionalWords
  if (typed.words.length < words || typed.words.length > most) {
    const number = optionalWords > 0 ? `at most ${most}` : words || 'no'
    throw new UsageError(`takes ${number} ${most === 1 ? 'word' : 'words'}, not ${typed.words.length}`)
  }
  command.check?.(typed)
  return typed
}

type Options = Record<string, { type: 'string' | 'boolean'; short?: string; multiple?: boolean }>

function parse(args: string[], options: Options): Typed {
  const parsed = orUsageError(() => parseArgs({ args, options, allowPositionals: true, strict: true, tokens: true }))
  const names = parsed.tokens.flatMap((token) => (token.kind === 'option' ? [token.name] : []))
  const repeated = names.find((name, index) => names.indexOf(name) < index && !options[name]?.multiple)
  if (repeated) throw new UsageError(`--${repeated} is given more than once`)
  return { options: parsed.values as Typed['options'], words: parsed.positionals }
}

function orUsageError<T>(parse: () => T): T {
  try {
    return parse()
  } catch (error) {
    // The first sentence says what is wrong; the rest is advice on how to write what is no part of any usage.
    throw new UsageError((error as Error).message.split(/\.\s/)[0])
  }
}

/** Takes `--limit -1` for `--limit=-1`, so that the message is about the number and not about how to write it. */
function joinNegativeNumbers(args: string[], values: string[]): string[] {
  const takesValue = (arg = '') => arg.startsWith('--') && values.includes(arg.slice(2))
  const isNegative = (index: number) => takesValue(args[index - 1]) && /^-\d/.test(args[index] ?? '')
  return args.flatMap((arg, index) => {
    if (isNegative(index)) return []
    return isNegative(index + 1) ? [`${arg}=${args[index + 1]}`] : [arg]
  })
}

export function readSettings(typed: Typed): Config {
  const options = { HOST: textOption(typed, 'host'), PORT: textOption(typed, 'port') }
  try {
    // The options are read on their own first: what is wrong with them is wrong usage, not a wrong setting.
    readConfig(options, {})
  } catch (error) {
    throw new UsageError((error as Error).message)
  }
  return readConfig(options)
}
