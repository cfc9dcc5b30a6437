import { systemClock } from '../clock.ts'
import { isColourWanted, requireNoRuntimeVariables } from '../config.ts'
import { ServiceError } from '../errors.ts'
import { oneLine } from '../lib/texts.ts'
import { nextTurn } from '../lib/turns.ts'
import { isCompiled } from '../platform.ts'
import { type Command, nameOf, parseArguments, readSettings, UsageError } from './command.ts'
import { type Interruption, listenForInterruption, untilInterrupted } from './interruption.ts'
import { createOutput } from './output.ts'
import { createProgress } from './progress.ts'

/** Commands by the first word of their names. Groups are loaded on demand, which keeps every command quick. */
const groups = new Map<string, () => Promise<{ commands: Command[] }>>(
  Object.entries({
    serve: () => import('./serve.ts'),
    orgs: () => import('./orgs.ts'),
    keys: () => import('./keys.ts'),
    prompts: () => import('./prompts.ts'),
    history: () => import('./history.ts'),
    signals: () => import('./signals.ts'),
    usage: () => import('./signals.ts'),
    impact: () => import('./impact.ts'),
    compare: () => import('./impact.ts'),
    sync: () => import('./sync.ts'),
    audit: () => import('./audit.ts'),
    webhooks: () => import('./webhooks.ts'),
    console: () => import('./console.ts'),
    backup: () => import('./backup.ts'),
    restore: () => import('./backup.ts'),
    migrate: () => import('./operate.ts'),
    healthcheck: () => import('./operate.ts'),
    config: () => import('./operate.ts'),
    version: () => import('./operate.ts'),
  }),
)

const progress = createProgress()

let outputError: NodeJS.ErrnoException | undefined

const streams = {
  out(text: string) {
    progress.end()
    process.stdout.write(text)
  },
  err(text: string) {
    progress.end()
    process.stderr.write(text)
  },
  get hasColour() {
    return process.stdout.isTTY === true && isColourWanted()
  },
}

/** Fails when a result was lost. A reader that closes the pipe early, such as `head`, is no failure. */
async function requireShown(): Promise<void> {
  await new Promise((resolve) => process.stdout.write('', resolve))
  // The error event comes after the callback of the write.
  await nextTurn()
  if (outputError && outputError.code !== 'EPIPE') {
    throw new Error(`The command succeeded, but its result could not be written: ${outputError.message}`)
  }
}

const isHelpWord = (word: string) => ['help', '--help', '-h'].includes(word)

/** Runs a command line and returns the exit status: 0 done, 1 failed, 2 wrong usage, 130 interrupted. */
export async function runCommandLine(args: string[]): Promise<number> {
  // Without a listener the error would end the process.
  process.stdout.on('error', (error) => {
    outputError = error
  })
  const [first = '', ...rest] = args
  if (first === '--version') return runCommandLine(['version', ...rest])
  if (isHelpWord(first)) {
    const about = rest.filter((word) => !isHelpWord(word))
    if (about.length > 0) return runCommandLine([...about, '--help'])
    streams.out(await listAll())
    return 0
  }
  const { commands } = (await groups.get(first)?.()) ?? { commands: [] }
  const wordsOf = (command: Command) => nameOf(command).split(' ')
  const command = commands.find((one) => wordsOf(one).every((word, index) => word === args[index]))
  return command ? runCommand(command, args.slice(wordsOf(command).length)) : listInstead(args, commands)
}

async function runCommand(command: Command, given: string[]): Promise<number> {
  let interruption = neverInterrupted
  let isDryRun = false
  try {
    // From source, a developer may want an inspector.
    if (isCompiled) requireNoRuntimeVariables()
    const args = parseArguments(command, given)
    if (args.options.help) {
      streams.out(`${usageOf(command)}${command.description}\n`)
      return 0
    }
    isDryRun = args.options['dry-run'] === true
    const config = readSettings(args)
    const output = createOutput(args.options.json === true, streams)
    if (!command.isService) interruption = listenForInterruption()
    const context = { args, config, clock: systemClock, output, progress, interruption, warn }
    await untilInterrupted(interruption, command.run(context))
    progress.end()
    await requireShown()
    return 0
  } catch (error) {
    if (interruption.signal.aborted) {
      warn(describeInterruption(isDryRun ? {} : command, interruption))
      return interruption.status
    }
    warn(explain(error))
    if (!(error instanceof UsageError)) return 1
    streams.err(usageOf(command))
    return 2
  }
}

const neverInterrupted: Interruption = { signal: new AbortController().signal, status: 0, isUncertain: false }

function describeInterruption({ verifyWith, ifInterrupted }: Partial<Command>, { isUncertain }: Interruption): string {
  if (!isUncertain || !verifyWith) return `Interrupted: ${ifInterrupted ?? 'nothing was changed'}.`
  return (
    'Interrupted before the database had answered: the change may or may not have been made. ' +
    `To check, run: prompt-signals ${verifyWith}`
  )
}

/** Handles an unknown command: lists the commands of its group, or all. */
async function listInstead(args: string[], commands: Command[]): Promise<number> {
  const isHelp = args.length > 1 && ['--help', '-h'].includes(args.at(-1) as string)
  const name = oneLine((isHelp ? args.slice(0, -1) : args).slice(0, 2).join(' '))
  const isGroup = commands.some((command) => nameOf(command).startsWith(`${name} `))
  const list = commands.length > 0 ? listOf(commands) : await listAll()
  if (isHelp && isGroup) {
    streams.out(list)
    return 0
  }
  if (args.length > 0) warn(isGroup ? `"${name}" is a group of commands:` : `There is no command "${name}".`)
  streams.err(list)
  return 2
}

const warn = (line: string) => streams.err(`prompt-signals: ${line}\n`)

function explain(error: unknown): string {
  if (error instanceof ServiceError) {
    const details = (error.context.details ?? []).map(({ path, message }) => `${path || 'it'} ${message}`)
    return oneLine(`${error.message} ${details.join('; ')}`.trimEnd())
  }
  return oneLine(error instanceof Error ? error.message : String(error))
}

const usageOf = ({ usage }: Command) => `usage: prompt-signals ${usage} [--json]\n`

const listOf = (commands: Command[]) =>
  commands.map(({ usage, description }) => `  ${usage}\n      ${description}\n`).join('')

export async function loadCommands(): Promise<Command[]> {
  const loaded = await Promise.all([...groups.values()].map((load) => load()))
  // Some files hold several groups.
  return [...new Set(loaded.flatMap(({ commands }) => commands))]
}

async function listAll(): Promise<string> {
  const list = listOf(await loadCommands())
  return `prompt-signals COMMAND\n\n${list}\nWith --json every result is one JSON object per line. Settings are environment variables.\n`
}
