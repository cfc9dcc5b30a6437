import { systemClock } from '../clock.ts'
import { requireNoRuntimeVariables } from '../config.ts'
import { isUnreachable } from '../db/errors.ts'
import { ServiceError } from '../errors.ts'
import { nextTurn } from '../lib/concurrency.ts'
import { oneLine } from '../lib/texts.ts'
import { isCompiled } from '../platform.ts'
import { type Command, nameOf, parseArguments, readSettings, UsageError } from './command.ts'
import { describeDetails, parseUsage } from './grammar.ts'
import { loadGroup } from './groups.ts'
import { describeOptions, listAll, listOf, usageOf } from './help.ts'
import { type Interruption, listenForInterruption, untilInterrupted } from './interruption.ts'
import { createOutput } from './output.ts'
import { createProgress } from './progress.ts'

const progress = createProgress()

let outputError: NodeJS.ErrnoException | undefined
// Without a listener the error would end the process.
process.stdout.on('error', (error) => {
  outputError = error
})

let lastWrite = Promise.resolve()

const streams = {
  out(text: string) {
    progress.end()
    // Bun calls back for an empty text before earlier ones are written.
    if (text !== '') lastWrite = new Promise((resolve) => process.stdout.write(text, () => resolve()))
  },
  err(text: string) {
    progress.end()
    process.stderr.write(text)
  },
}

/** The status of a program that the closed pipe ended, as in shells: 128 plus the number of SIGPIPE. */
const closedPipeStatus = 141

/** Waits for the reader of a pipe: the end of the process would drop what is not written. */
async function flushOutput(): Promise<void> {
  await lastWrite
  // The error event comes after the callback of the write.
  await nextTurn()
}

/** Fails when a result was lost. A reader that closes the pipe early, such as `head`, is no failure. */
function requireShown(): void {
  if (outputError && outputError.code !== 'EPIPE') {
    throw new Error(`The command succeeded, but its result could not be written: ${outputError.message}`)
  }
}

const isHelpWord = (word: string) => ['help', '--help', '-h'].includes(word)

/** Runs a command line and returns the exit status: 0 done, 1 failed, 2 wrong usage, 130 interrupted. */
export async function runCommandLine(args: string[]): Promise<number> {
  const [first = '', ...rest] = args
  if (first === '--version' || first === '-v') return runCommandLine(['version', ...rest])
  if (isHelpWord(first)) {
    const about = rest.filter((word) => !isHelpWord(word))
    if (about.length > 0) return runCommandLine([...about, '--help'])
    streams.out(await listAll())
    return 0
  }
  const commands = await loadGroup(first)
  const wordsOf = (command: Command) => nameOf(command).split(' ')
  const command = commands.find((one) => wordsOf(one).every((word, index) => word === args[index]))
  return command ? runCommand(command, args.slice(wordsOf(command).length)) : rejectCommand(args, commands)
}

async function runCommand(command: Command, given: string[]): Promise<number> {
  let interruption = neverInterrupted
  try {
    // From source, a developer may want an inspector.
    if (isCompiled) requireNoRuntimeVariables()
    const args = await parseArguments(command, given)
    if (args.options.help) {
      streams.out(`${usageOf(command)}${command.description}\n\n${describeOptions(command)}`)
      return 0
    }
    const config = readSettings(args)
    const output = createOutput(args.options.json === true, streams)
    if (!command.isService) interruption = listenForInterruption()
    const context = { args, config, clock: systemClock, output, progress, interruption, warn }
    // A command may fail after it has shown its result.
    await untilInterrupted(interruption.signal, command.run(context).finally(flushOutput))
    progress.end()
    requireShown()
    return 0
  } catch (error) {
    if (interruption.signal.aborted) {
      warn(['Interrupted.', command.ifInterrupted].filter(Boolean).join(' '))
      return interruption.status
    }
    if (outputError?.code === 'EPIPE') return closedPipeStatus
    if (isUnreachable(error)) {
      const reason = interruption.stopReason ? ` (${oneLine(interruption.stopReason)})` : ''
      warn(`The connection to the database was lost${reason}.`)
      return 1
    }
    warn(describe(error, command))
    if (!(error instanceof UsageError)) return 1
    streams.err(usageOf(command))
    return 2
  }
}

const neverInterrupted: Interruption = { signal: new AbortController().signal, status: 0 }

/** Shows the commands of a group, or all if no command was given. */
async function rejectCommand(args: string[], commands: Command[]): Promise<number> {
  const isHelp = args.length > 1 && ['--help', '-h'].includes(args.at(-1) as string)
  const words = isHelp ? args.slice(0, -1) : args
  const name = oneLine(words.slice(0, 2).join(' '))
  const isGroup = commands.some((command) => nameOf(command).startsWith(`${name} `))
  if (isHelp && isGroup) {
    streams.out(listOf(commands))
    return 0
  }
  if (isGroup) warn(`"${name}" is a group of commands:`)
  if (isGroup || args.length === 0) streams.err(isGroup ? listOf(commands) : await listAll())
  else warn(`There is no command "${name}". See "prompt-signals --help".`)
  return 2
}

const warn = (line: string) => streams.err(`prompt-signals: ${line}\n`)

function describe(error: unknown, { usage }: Command): string {
  if (!(error instanceof ServiceError)) return oneLine(error instanceof Error ? error.message : String(error))
  return oneLine(`${error.message} ${describeDetails(parseUsage(usage), error.context.details)}`.trimEnd())
}
