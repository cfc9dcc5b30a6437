import { systemClock } from '../clock.ts'
import { isColourWanted, requireNoRuntimeVariables } from '../config.ts'
import { ServiceError } from '../errors.ts'
import { nextTurn } from '../lib/turns.ts'
import { isCompiled } from '../platform.ts'
import { parseArguments, readSettings } from './arguments.ts'
import { type Command, type Commands, UsageError } from './command.ts'
import { type Interruption, listenForInterruption, untilInterrupted } from './interruption.ts'
import { createOutput } from './output.ts'

const loadBackup = async () => (await import('./backup.ts')).backupCommands
const loadSignals = async () => {
  const [{ signalCommands }, { signalDataCommands }] = await Promise.all([
    import('./signals.ts'),
    import('./signal_data.ts'),
  ])
  return { ...signalCommands, ...signalDataCommands }
}
const loadOperate = async () => (await import('./operate.ts')).operateCommands

/** Commands by the first word of their names. A group is loaded when it is used, which keeps every command quick. */
const groups: Record<string, () => Promise<Commands>> = {
  serve: async () => (await import('./serve.ts')).serveCommands,
  orgs: async () => (await import('./orgs.ts')).orgCommands,
  keys: async () => (await import('./keys.ts')).keyCommands,
  prompts: async () => (await import('./prompts.ts')).promptCommands,
  history: async () => (await import('./history.ts')).historyCommands,
  signals: loadSignals,
  usage: loadSignals,
  impact: async () => (await import('./impact.ts')).impactCommands,
  sync: async () => (await import('./sync.ts')).syncCommands,
  audit: async () => (await import('./audit.ts')).auditCommands,
  webhooks: async () => (await import('./webhooks.ts')).webhookCommands,
  console: async () => (await import('./console.ts')).consoleCommands,
  backup: loadBackup,
  restore: loadBackup,
  migrate: loadOperate,
  healthcheck: loadOperate,
  config: loadOperate,
  version: loadOperate,
}

/** Why a result that was written has not reached its reader. */
let outputError: NodeJS.ErrnoException | undefined

const streams = {
  out(text: string) {
    if (process.stdout.listenerCount('error') === 0) {
      process.stdout.on('error', (error) => {
        outputError = error
      })
    }
    process.stdout.write(text)
  },
  err: (text: string) => void process.stderr.write(text),
  get hasColour() {
    return process.stdout.isTTY === true && isColourWanted()
  },
}

/** Fails when a result was lost. A reader that closes the pipe early, as `head` does, has lost nothing. */
async function requireShown(): Promise<void> {
  await new Promise((resolve) => process.stdout.write('', resolve))
  // The error event comes after the callback of the write.
  await nextTurn()
  if (outputError && outputError.code !== 'EPIPE') {
    throw new Error(`It is done, but could not be shown: ${outputError.message}`)
  }
}

/** Runs what was typed and returns the exit status: 0 done, 1 failed, 2 wrong usage, 130 interrupted. */
export async function runCommandLine(args: string[]): Promise<number> {
  const [first = '', ...rest] = args
  if (first === '--version') return runCommandLine(['version', ...rest])
  if (first === 'help' && rest.length > 0) return runCommandLine([...rest, '--help'])
  if (['help', '--help', '-h'].includes(first) && rest.length === 0) {
    streams.out(await listAll())
    return 0
  }
  const commands = Object.hasOwn(groups, first) ? await (groups[first] as () => Promise<Commands>)() : {}
  const name = [3, 2, 1].map((words) => args.slice(0, words).join(' ')).find((name) => Object.hasOwn(commands, name))
  const command = commands[name ?? '']
  return name && command ? runCommand(command, args.slice(name.split(' ').length)) : listInstead(args, commands)
}

async function runCommand(command: Command, args: string[]): Promise<number> {
  let interruption: Interruption | undefined
  try {
    // From source, a developer may well want an inspector.
    if (isCompiled) requireNoRuntimeVariables()
    const typed = parseArguments(command, args)
    if (typed.options.help) {
      streams.out(`${usageOf(command)}${command.does}\n`)
      return 0
    }
    const config = readSettings(typed)
    const output = createOutput(typed.options.json === true, streams)
    const context = { typed, config, clock: systemClock, output, warn }
    // The service has its own way to stop.
    if (command.isService) await command.run({ ...context, interruption: neverInterrupted })
    else {
      interruption = listenForInterruption()
      await untilInterrupted(interruption, command.run({ ...context, interruption }))
    }
    await requireShown()
    return 0
  } catch (error) {
    if (interruption?.signal.aborted) {
      warn(describeInterruption(command, interruption))
      return interruption.status
    }
    warn(explain(error))
    if (!(error instanceof UsageError)) return 1
    streams.err(usageOf(command))
    return 2
  }
}

const neverInterrupted: Interruption = { signal: new AbortController().signal, status: 0, isUncertain: false }

function describeInterruption({ verifyWith, ifInterrupted }: Command, { isUncertain }: Interruption): string {
  if (!isUncertain || !verifyWith) return `Interrupted: ${ifInterrupted ?? 'nothing was changed'}.`
  return (
    'Interrupted before the database had answered: the change may or may not have been made. ' +
    `To be sure, run: prompt-signals ${verifyWith}`
  )
}

/** Handles a name that is no command: lists the commands of the group that it names, or all. */
async function listInstead(args: string[], commands: Commands): Promise<number> {
  const isHelp = args.length > 1 && ['--help', '-h'].includes(args.at(-1) as string)
  const name = oneLine((isHelp ? args.slice(0, -1) : args).slice(0, 2).join(' '))
  const isGroup = Object.keys(commands).some((full) => full.startsWith(`${name} `))
  const list = Object.keys(commands).length > 0 ? listOf(Object.values(commands)) : await listAll()
  if (isHelp && isGroup) {
    streams.out(list)
    return 0
  }
  if (args.length > 0) warn(isGroup ? `"${name}" is a group of commands:` : `There is no command "${name}".`)
  streams.err(list)
  return 2
}

const warn = (line: string) => streams.err(`prompt-signals: ${line}\n`)

/** An error as one line for the operator. */
function explain(error: unknown): string {
  if (error instanceof ServiceError) {
    const details = (error.context.details ?? []).map(({ path, message }) => `${path || 'it'} ${message}`)
    return oneLine(`${error.message} ${details.join('; ')}`.trimEnd())
  }
  return oneLine(error instanceof Error ? error.message : String(error))
}

/** Removes control characters: a text that was typed, or that comes from the database, must not steer the terminal. */
const oneLine = (text: string) => text.replace(/\p{Cc}+/gu, ' ')

const usageOf = ({ usage }: Command) => `usage: prompt-signals ${usage} [--json]\n`

const listOf = (commands: Command[]) => commands.map(({ usage, does }) => `  ${usage}\n      ${does}\n`).join('')

/** Every command, in the order in which they are listed. */
export async function loadCommands(): Promise<Command[]> {
  const loaded = await Promise.all([...new Set(Object.values(groups))].map((load) => load()))
  return loaded.flatMap((commands) => Object.values(commands))
}

async function listAll(): Promise<string> {
  const list = listOf(await loadCommands())
  return `prompt-signals COMMAND\n\n${list}\nWith --json every result is one JSON object on a line. Settings are environment variables.\n`
}
