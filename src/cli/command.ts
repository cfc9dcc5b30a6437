import { type ParseArgsOptionsConfig, parseArgs } from 'node:util'
import type { Clock } from '../clock.ts'
import { type Config, readConfig } from '../config.ts'
import { ServiceError } from '../errors.ts'
import type { Interruption } from './interruption.ts'
import type { Output } from './output.ts'
import type { Progress } from './progress.ts'

/** Wrong usage: shown with the usage line, exit status 2. */
export class UsageError extends Error {}

export type Context = {
  args: Arguments
  config: Config
  clock: Clock
  output: Output
  progress: Progress
  interruption: Interruption
  warn(line: string): void
}

export type Command = {
  /** The name of the command and what may follow it. Shown to people, and parsed for the grammar. */
  usage: string
  description: string
  /** Throws UsageError for invalid values, before anything is opened for the command. */
  check?(args: Arguments): void
  /** Serves until it is stopped, and handles signals itself. */
  isService?: true
  /** What an interruption leaves behind; "nothing was changed" by default. */
  ifInterrupted?: string
  /** The command that shows whether a change was made; undefined for a command that changes nothing. */
  verifyWith?: string
  run(context: Context): Promise<void>
}

export class Arguments {
  constructor(
    readonly options: Record<string, string | boolean | string[] | undefined>,
    readonly positionals: string[],
  ) {}

  text(name: string): string | null {
    const value = this.options[name]
    return typeof value === 'string' ? value : null
  }

  /** For an option that the usage line requires. */
  required(name: string): string {
    return this.options[name] as string
  }

  list(name: string): string[] | null {
    const values = this.options[name]
    return Array.isArray(values) ? values : null
  }

  /** A whole number of at least `least` that fits an integer column. */
  integer(name: string, least: number): number | null {
    const text = this.text(name)
    if (text === null) return null
    if (!/^\d{1,10}$/.test(text) || Number(text) < least || Number(text) > 2_147_483_647) {
      throw new UsageError(`--${name} must be a whole number from ${least} to 2147483647, not "${text}"`)
    }
    return Number(text)
  }

  /** Parses options like a query of the API, which ignores unknown ones. */
  asQuery<T>(parse: (query: URLSearchParams) => T): T {
    return namingOptions(() => parse(new URLSearchParams(this.options as Record<string, string>)))
  }

  positional(index: number): string {
    return this.positionals[index] as string
  }
}

/** Turns the error of a parser of the API into wrong usage. `optionOf` names the option for the path of a detail. */
export function namingOptions<T>(parse: () => T, optionOf = (path: string) => path): T {
  try {
    return parse()
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    const problems = error.context.details?.map(({ path, message }) => `--${optionOf(path)} ${message}`)
    throw new UsageError(problems?.join('; ') || error.message)
  }
}

export const nameOf = ({ usage }: Command): string => usage.split(/ [-A-Z[]/)[0] as string

/** An option in a usage line. Its value ends at a space, a bracket or an alternative; a flag has none. */
const optionPattern = /--([a-z-]+)( [^-[\s]\S*?(?=\s|\]|\|--|$))?/g

/**
 * Derives the grammar of a command from its usage line. An option is optional in brackets or with an alternative after
 * `|`, and repeatable when its bracket is followed by `…`. Positional arguments are in capitals.
 */
function parseUsage(usage: string) {
  const options = [...usage.matchAll(optionPattern)].map(({ 0: option, 1: name = '', 2: value, index }) => {
    const [before, after] = [usage.slice(0, index), usage.slice(index + option.length)]
    const isInBrackets = before.lastIndexOf('[') > before.lastIndexOf(']')
    const hasAlternative = before.endsWith('|') || after.startsWith('|')
    return { name, isFlag: !value, isRequired: !isInBrackets && !hasAlternative, multiple: after.startsWith(']…') }
  })
  const positionals = usage.replaceAll(optionPattern, '').match(/\[?\b[A-Z]+/g) ?? []
  const least = positionals.filter((positional) => !positional.startsWith('[')).length
  return { options, most: positionals.length, least }
}

export function parseArguments({ usage, check }: Command, given: string[]): Arguments {
  const { options, most, least } = parseUsage(usage)
  const types = Object.fromEntries([
    ...options.map(({ name, isFlag, multiple }) => [name, { type: isFlag ? 'boolean' : 'string', multiple }]),
    ['json', { type: 'boolean' }],
    ['help', { type: 'boolean', short: 'h' }],
  ])
  const args = parse(given, types)
  if (args.options.help) return args
  const missing = options.filter(({ name, isRequired }) => isRequired && args.options[name] === undefined)
  if (missing.length > 0) throw new UsageError(`${missing.map(({ name }) => `--${name}`).join(', ')} missing`)
  if (args.positionals.length < least || args.positionals.length > most) {
    const number = most > least ? `at most ${most}` : most || 'no'
    throw new UsageError(`takes ${number} ${most === 1 ? 'argument' : 'arguments'}, not ${args.positionals.length}`)
  }
  check?.(args)
  return args
}

function parse(args: string[], options: ParseArgsOptionsConfig): Arguments {
  try {
    const { values, positionals, tokens } = parseArgs({ args, options, allowPositionals: true, tokens: true })
    const names = tokens.flatMap((token) => (token.kind === 'option' ? [token.name] : []))
    const repeated = names.find((name, index) => names.indexOf(name) < index && !options[name]?.multiple)
    if (repeated) throw new Error(`--${repeated} must be given only once`)
    return new Arguments(values as Arguments['options'], positionals)
  } catch (error) {
    // The first sentence names the problem. The rest is advice that does not apply here.
    throw new UsageError((error as Error).message.split(/\.\s/)[0])
  }
}

export function readSettings(args: Arguments): Config {
  const options = { HOST: args.text('host'), PORT: args.text('port') }
  try {
    // The options are read separately first: an invalid option is wrong usage, not a wrong setting.
    readConfig(options, {})
  } catch (error) {
    throw new UsageError((error as Error).message)
  }
  return readConfig(options)
}
