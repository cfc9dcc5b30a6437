import type { Clock } from '../clock.ts'
import type { Config } from '../config.ts'
import type { Arguments } from './arguments.ts'
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
  /** Writes a line for the operator to standard error. */
  warn(line: string): void
}

export type Command = {
  /** The words that name it and what may follow, as shown to a person, and as its arguments are parsed by. */
  usage: string
  description: string
  /** Whether it serves until it is stopped, and handles signals itself. */
  isService?: true
  /** What an interruption leaves; "nothing was changed" unless given. */
  ifInterrupted?: string
  /** The command that shows whether a change was made; absent for a command that changes nothing. */
  verifyWith?: string
  /** Throws UsageError for values that cannot be right, before anything is opened for the command. */
  check?(args: Arguments): void
  run(context: Context): Promise<void>
}
