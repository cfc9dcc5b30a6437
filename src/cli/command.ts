import type { Clock } from '../clock.ts'
import type { Config } from '../config.ts'
import type { Arguments, CommandLine } from './arguments.ts'
import type { Interruption } from './interruption.ts'
import type { Output } from './output.ts'
import type { Progress } from './progress.ts'

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

export type Command = CommandLine & {
  description: string
  /** Serves until it is stopped, and handles signals itself. */
  isService?: true
  /** What an interruption leaves behind; "nothing was changed" by default. */
  ifInterrupted?: string
  /** The command that shows whether a change was made; undefined for a command that changes nothing. */
  verifyWith?: string
  run(context: Context): Promise<void>
}
