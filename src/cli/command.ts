import type { Clock } from '../clock.ts'
import type { Config } from '../config.ts'
import type { Db } from '../db/client.ts'
import type { Output } from './output.ts'

/** Wrong usage: shown with the usage line, exit status 2. */
export class UsageError extends Error {}

/** What was typed: options by name, and the words that are none. */
export type Typed = { options: Record<string, string | boolean | undefined>; words: string[] }

export type Context = { typed: Typed; config: Config; clock: Clock; output: Output }

export type Command = {
  /** The words that name it and what may follow, as shown to a person. */
  usage: string
  does: string
  /** Options that take a value; those in `required` must be given. */
  values?: string[]
  required?: string[]
  flags?: string[]
  /** How many words must follow the name. */
  words?: number
  /** Throws UsageError for values that cannot be right, before anything is opened for the command. */
  check?(typed: Typed): void
  run(context: Context): Promise<void>
}

/** By their names. */
export type Commands = Record<string, Command>

/** A command that works on the database: it is opened for the command and closed after it. */
export type DatabaseCommand = Omit<Command, 'run'> & {
  /** Whether it makes the embedded database if there is none. */
  isFirst?: true
  run(context: Context & { db: Db }): Promise<void>
}

export function textOption({ options }: Typed, name: string): string | null {
  const value = options[name]
  return typeof value === 'string' ? value : null
}

/** The value of an option that is listed as required. */
export function requiredOption(typed: Typed, name: string): string {
  const value = textOption(typed, name)
  if (value === null) throw new UsageError(`--${name} is missing`)
  return value
}

/** A whole number from the given one on, within what the database keeps. */
export function integerOption(typed: Typed, name: string, least: number): number | null {
  const text = textOption(typed, name)
  if (text === null) return null
  if (!/^\d{1,10}$/.test(text) || Number(text) < least || Number(text) > 2_147_483_647) {
    throw new UsageError(`--${name} must be a whole number from ${least} to 2147483647, not "${text}"`)
  }
  return Number(text)
}
