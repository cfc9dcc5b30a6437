import { type ParseArgsOptionsConfig, parseArgs } from 'node:util'
import type { Clock } from '../clock.ts'
import { type Config, readConfig } from '../config.ts'
import { ServiceError } from '../errors.ts'
import { describeDetails, findProblem, type Grammar, parseUsage } from './grammar.ts'
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
  /** What to do after an interruption, for a command that goes on where it stopped. */
  ifInterrupted?: string
  run(context: Context): Promise<void>
}

/** Splits what an option has at its first equals sign. The second part may be empty only if `least` is 0. */
export function splitPair(option: string, given: string, form = 'FIELD=TEXT', least = 1): [string, string] {
  const end = given.indexOf('=')
  const [field, text] = [given.slice(0, end), given.slice(end + 1)]
  if (end < 1 || text.length < least) throw new UsageError(`--${option} must be ${form}, not "${given}"`)
  return [field, text]
}

const idPrefixes = { ORG: 'org_', PROMPT: 'pmt_' } as const

export class Arguments {
  constructor(
    readonly options: Record<string, string | boolean | string[] | undefined>,
    readonly positionals: string[],
    readonly grammar: Grammar,
  ) {}

  text(name: string): string | null {
    const value = this.options[name]
    return typeof value === 'string' ? value : null
  }

  /** For an option that the usage line requires. */
  required(name: string): string {
    return this.options[name] as string
  }

  list(name: string): string[] | undefined {
    const values = this.options[name]
    return Array.isArray(values) ? values : undefined
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

  /** Parses options as an API query, but rejects an invalid `page` or `limit`. */
  asQuery<T>(parse: (query: URLSearchParams) => T): T {
    for (const name of ['page', 'limit']) this.integer(name, 1)
    return this.naming(() => parse(new URLSearchParams(this.options as Record<string, string>)))
  }

  /** Turns the error of a parser of the API into wrong usage that names the options. */
  naming<T>(parse: () => T): T {
    try {
      return parse()
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error
      throw new UsageError(describeDetails(this.grammar, error.context.details) || error.message)
    }
  }

  /** Replaces the names of organisations, or of prompts, by ids. */
  async withIds(kind: keyof typeof idPrefixes, idOf: (name: string) => Promise<string>): Promise<Arguments> {
    const replace = async <T>(given: T, placeholder: string | null | undefined): Promise<T> => {
      const [itsKind, ...others] = placeholder?.split('|') ?? []
      if (itsKind !== kind) return given
      if (Array.isArray(given)) return Promise.all(given.map((one) => replace(one, placeholder))) as T
      if (typeof given !== 'string' || given.startsWith(idPrefixes[kind]) || others.includes(given)) return given
      return (await idOf(given)) as T
    }
    const options = { ...this.options }
    for (const { name, value } of this.grammar.options) {
      if (name in options) options[name] = await replace(options[name], value)
    }
    const positionals = this.positionals.map((word, index) => replace(word, this.grammar.positionals[index]))
    return new Arguments(options, await Promise.all(positionals), this.grammar)
  }

  positional(index: number): string {
    return this.positionals[index] as string
  }

  /** The argument that the usage line calls so. */
  place(placeholder: string): string | null {
    return this.positionals[this.grammar.positionals.indexOf(placeholder)] ?? null
  }
}

export const nameOf = ({ usage }: Command): string => usage.split(/ [-A-Z[]/)[0] as string

export async function parseArguments({ usage, check }: Command, given: string[]): Promise<Arguments> {
  const grammar = parseUsage(usage)
  const types = Object.fromEntries([
    ...grammar.options.map(({ name, value, multiple }) => [name, { type: value ? 'string' : 'boolean', multiple }]),
    ['json', { type: 'boolean' }],
    ['help', { type: 'boolean', short: 'h' }],
  ])
  const args = parse(given, types, grammar)
  if (args.options.help) return args
  const problem = findProblem(grammar, args.options)
  if (problem) throw new UsageError(problem)
  const [least, most] = [grammar.least, grammar.positionals.length]
  if (args.positionals.length < least || args.positionals.length > most) {
    const number = most > least ? `at most ${most}` : most || 'no'
    throw new UsageError(`takes ${number} ${most === 1 ? 'argument' : 'arguments'}, not ${args.positionals.length}`)
  }
  // Names are looked up later; until then an id stands in for each.
  const withOrg = await args.withIds('ORG', async () => 'org_x')
  check?.(await withOrg.withIds('PROMPT', async () => 'pmt_x'))
  return args
}

function parse(given: string[], options: ParseArgsOptionsConfig, grammar: Grammar): Arguments {
  // A negative number belongs to the option before it, which then says what it must be.
  const isNumber = (index: number) => /^-\d/.test(given[index] ?? '') && /^--[a-z-]+$/.test(given[index - 1] ?? '')
  const args = given.flatMap((word, index) =>
    isNumber(index) ? [] : isNumber(index + 1) ? `${word}=${given[index + 1]}` : word,
  )
  try {
    const { values, positionals, tokens } = parseArgs({ args, options, allowPositionals: true, tokens: true })
    const names = tokens.flatMap((token) => (token.kind === 'option' ? [token.name] : []))
    const repeated = names.find((name, index) => names.indexOf(name) < index && !options[name]?.multiple)
    if (repeated) throw new Error(`--${repeated} must be given only once`)
    return new Arguments(values as Arguments['options'], positionals, grammar)
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
    throw new UsageError((error as Error).message.replace(/^[A-Z]+/, (name) => `--${name.toLowerCase()}`))
  }
  return readConfig(options)
}
