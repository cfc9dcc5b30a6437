import { parseArgs } from 'node:util'
import { systemClock } from '../clock.ts'
import { type Config, readConfig } from '../config.ts'
import { ServiceError } from '../errors.ts'
import { nextTurn } from '../lib/turns.ts'
import { type Command, type Commands, type Typed, textOption, UsageError } from './command.ts'
import { createOutput } from './output.ts'

const loadBackup = async () => (await import('./backup.ts')).backupCommands
const loadOperate = async () => (await import('./operate.ts')).operateCommands

/** By the first word of their names. Each group is loaded when it is wanted, so that none waits for the others. */
const groups: Record<string, () => Promise<Commands>> = {
  serve: async () => (await import('./serve.ts')).serveCommands,
  orgs: async () => (await import('./orgs.ts')).orgCommands,
  keys: async () => (await import('./keys.ts')).keyCommands,
  prompts: async () => (await import('./prompts.ts')).promptCommands,
  history: async () => (await import('./history.ts')).historyCommands,
  audit: async () => (await import('./audit.ts')).auditCommands,
  webhooks: async () => (await import('./webhooks.ts')).webhookCommands,
  backup: loadBackup,
  restore: loadBackup,
  migrate: loadOperate,
  healthcheck: loadOperate,
  config: loadOperate,
  version: loadOperate,
}

/** Why what was shown has not arrived. */
let lost: NodeJS.ErrnoException | undefined

const streams = {
  out(text: string) {
    if (process.stdout.listenerCount('error') === 0) {
      process.stdout.on('error', (error) => {
        lost = error
      })
    }
    process.stdout.write(text)
  },
  err: (text: string) => void process.stderr.write(text),
}

/** A reader may have seen enough, as `head` has: what was done is done all the same. */
async function requireShown(): Promise<void> {
  await new Promise((resolve) => process.stdout.write('', resolve))
  // By when a failure has been told of.
  await nextTurn()
  if (lost && lost.code !== 'EPIPE') throw new Error(`It is done, but could not be shown: ${lost.message}`)
}

/** Runs what was typed; the exit status is 0 for done, 1 for refused or failed, 2 for wrong usage. */
export async function runCommandLine(args: string[]): Promise<number> {
  if (args.length === 1 && ['help', '--help', '-h'].includes(args[0] as string)) {
    streams.out(await usageOfAll())
    return 0
  }
  const commands = await loadCommands(args[0])
  const name = [3, 2, 1].map((words) => args.slice(0, words).join(' ')).find((name) => Object.hasOwn(commands, name))
  const command = commands[name ?? '']
  if (!name || !command) {
    if (args.length > 0) streams.err(`prompt-signals: There is no command "${oneLine(args.slice(0, 2).join(' '))}".\n`)
    streams.err(await usageOfAll())
    return 2
  }
  try {
    const typed = readTyped(command, args.slice(name.split(' ').length))
    if (typed.options.help) {
      streams.out(`${usageOf(command)}${command.does}\n`)
      return 0
    }
    const config = readSettings(typed)
    const output = createOutput(typed.options.json === true, streams)
    await command.run({ typed, config, clock: systemClock, output })
    await requireShown()
    return 0
  } catch (error) {
    const usage = error instanceof UsageError
    streams.err(`prompt-signals: ${explain(error)}\n`)
    if (usage) streams.err(usageOf(command))
    return usage ? 2 : 1
  }
}

function readSettings(typed: Typed): Config {
  const options = { HOST: textOption(typed, 'host'), PORT: textOption(typed, 'port') }
  try {
    // On their own first: what is wrong with them was typed, not set.
    readConfig(options, {})
  } catch (error) {
    throw new UsageError((error as Error).message)
  }
  return readConfig(options)
}

function readTyped(command: Command, args: string[]): Typed {
  const { values = [], flags = [], required = [], words = 0 } = command
  const options = Object.fromEntries([
    ...values.map((name) => [name, { type: 'string' as const }]),
    ...[...flags, 'json'].map((name) => [name, { type: 'boolean' as const }]),
    ['help', { type: 'boolean' as const, short: 'h' }],
  ])
  let typed: ReturnType<typeof parseArgs>
  try {
    typed = parseArgs({ args, options, allowPositionals: true })
  } catch (error) {
    // The first sentence says what is wrong; the rest is advice on how to write what is no part of any usage.
    throw new UsageError((error as Error).message.split(/\.\s/)[0])
  }
  const read = { options: typed.values as Typed['options'], words: typed.positionals }
  if (read.options.help) return read
  const missing = required.filter((name) => typed.values[name] === undefined)
  if (missing.length > 0) throw new UsageError(`${missing.map((name) => `--${name}`).join(', ')} missing`)
  if (read.words.length !== words) {
    throw new UsageError(`takes ${words || 'no'} ${words === 1 ? 'word' : 'words'}, not ${read.words.length}`)
  }
  command.check?.(read)
  return read
}

/** One line for the operator. */
function explain(error: unknown): string {
  if (error instanceof ServiceError) {
    const details = (error.context.details ?? []).map(({ path, message }) => `${path || 'it'} ${message}`)
    return oneLine(`${error.message} ${details.join('; ')}`.trimEnd())
  }
  return oneLine(error instanceof Error ? error.message : String(error))
}

/** Texts that were typed or come from the database must not break the line, nor steer the terminal. */
const oneLine = (text: string) => text.replace(/\p{Cc}+/gu, ' ')

const usageOf = ({ usage }: Command) => `usage: prompt-signals ${usage} [--json]\n`

const loadCommands = (word = ''): Promise<Commands> | Commands =>
  Object.hasOwn(groups, word) ? (groups[word] as () => Promise<Commands>)() : {}

async function usageOfAll(): Promise<string> {
  const loaded = await Promise.all([...new Set(Object.values(groups))].map((load) => load()))
  const lines = loaded
    .flatMap((commands) => Object.values(commands))
    .map(({ usage, does }) => `  ${usage}\n      ${does}\n`)
  return `prompt-signals COMMAND\n\n${lines.join('')}\nWith --json every result is one JSON object on a line. Settings are environment variables.\n`
}
