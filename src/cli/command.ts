import type { Clock } from '../clock.ts'
import type { Config } from '../config.ts'
import type { Db } from '../db/client.ts'
import { ServiceError } from '../errors.ts'
import type { Input } from '../lib/input.ts'
import type { Interruption } from './interruption.ts'
import type { Output } from './output.ts'

/** Wrong usage: shown with the usage line, exit status 2. */
export class UsageError extends Error {}

/** What was typed: options by name, and the words that are not options. */
export type Typed = { options: Record<string, string | boolean | string[] | undefined>; words: string[] }

export type Context = {
  typed: Typed
  config: Config
  clock: Clock
  output: Output
  interruption: Interruption
  /** Writes a line for the operator to standard error. */
  warn(line: string): void
}

export type Command = {
  /** The words that name it and what may follow, as shown to a person. */
  usage: string
  does: string
  /** Options that take a value; those in `required` must be given. */
  values?: string[]
  required?: string[]
  /** The options that may be given several times. */
  repeatable?: string[]
  flags?: string[]
  /** How many words must follow the name, and how many more may. */
  words?: number
  optionalWords?: number
  /** Whether it serves until it is stopped, and handles signals itself. */
  isService?: true
  /** What an interruption leaves; "nothing was changed" unless given. */
  ifInterrupted?: string
  /** The command that shows whether a change was made; absent for a command that changes nothing. */
  verifyWith?: string
  /** Throws UsageError for values that cannot be right, before anything is opened for the command. */
  check?(typed: Typed): void
  run(context: Context): Promise<void>
}

/** Commands by their names. */
export type Commands = Record<string, Command>

/** A command that works on the database: it is opened for the command and closed after it. */
export type DatabaseCommand = Omit<Command, 'run'> & {
  /** Whether it creates the embedded database if there is none. */
  isFirst?: true
  /** Whether its first word names a file to read, which is opened before the database; "-" is standard input. */
  readsFile?: true
  run(context: Context & { db: Db; input: Input | undefined }): Promise<void>
}

export function textOption({ options }: Typed, name: string): string | null {
  const value = options[name]
  return typeof value === 'string' ? value : null
}

/** The values of an option that may be given several times; null without any. */
export function listOption({ options }: Typed, name: string): string[] | null {
  const values = options[name]
  return Array.isArray(values) ? values : null
}

/** The value of an option that is listed as required. */
export function requiredOption(typed: Typed, name: string): string {
  const value = textOption(typed, name)
  if (value === null) throw new UsageError(`--${name} is missing`)
  return value
}

/** A whole number from the given one on that fits an integer column. */
export function integerOption(typed: Typed, name: string, least: number): number | null {
  const text = textOption(typed, name)
  if (text === null) return null
  if (!/^\d{1,10}$/.test(text) || Number(text) < least || Number(text) > 2_147_483_647) {
    throw new UsageError(`--${name} must be a whole number from ${least} to 2147483647, not "${text}"`)
  }
  return Number(text)
}

/** Reads options by the rules of the interface's queries. What is wrong with one is wrong usage. */
export function withUsageErrors<T>(read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    const details = error.context.details ?? []
    throw new UsageError(details.map(({ path, message }) => `--${path} ${message}`).join('; ') || error.message)
  }
}
