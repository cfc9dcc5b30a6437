import { parseArgs } from 'node:util'
import { systemClock } from '../clock.ts'
import { readConfig } from '../config.ts'
import { ServiceError } from '../errors.ts'
import { type Command, type Typed, textOption, UsageError } from './command.ts'
import { onDatabase } from './database.ts'
import { historyCommands } from './history.ts'
import { keyCommands } from './keys.ts'
import { operateCommands } from './operate.ts'
import { orgCommands } from './orgs.ts'
import { createOutput } from './output.ts'
import { promptCommands } from './prompts.ts'
import { serveCommand } from './serve.ts'

const databaseCommands = { ...orgCommands, ...keyCommands, ...promptCommands, ...historyCommands }

const commands: Record<string, Command> = {
  serve: serveCommand,
  ...Object.fromEntries(Object.entries(databaseCommands).map(([name, command]) => [name, onDatabase(command)])),
  ...operateCommands,
}

const streams = {
  out: (text: string) => void process.stdout.write(text),
  err: (text: string) => void process.stderr.write(text),
}

/** Runs what was typed; the exit status is 0 for done, 1 for refused or failed, 2 for wrong usage. */
export async function runCommandLine(args: string[]): Promise<number> {
  if (args.length === 1 && ['help', '--help', '-h'].includes(args[0] as string)) {
    streams.out(usageOfAll())
    return 0
  }
  const name = [args.slice(0, 2).join(' '), args[0] ?? ''].find((words) => words in commands)
  const command = commands[name ?? '']
  if (!name || !command) {
    streams.err(usageOfAll())
    return 2
  }
  try {
    const typed = readTyped(command, args.slice(name.split(' ').length))
    const config = readConfig({ HOST: textOption(typed, 'host'), PORT: textOption(typed, 'port') })
    const output = createOutput(typed.options.json === true, streams)
    await command.run({ typed, config, clock: systemClock, output })
    return 0
  } catch (error) {
    const usage = error instanceof UsageError
    streams.err(`prompt-signals: ${explain(error)}\n`)
    if (usage) streams.err(`usage: prompt-signals ${command.usage} [--json]\n`)
    return usage ? 2 : 1
  }
}

function readTyped(command: Command, args: string[]): Typed {
  const { values = [], flags = [], required = [], words = 0 } = command
  const options = Object.fromEntries([
    ...values.map((name) => [name, { type: 'string' as const }]),
    ...[...flags, 'json'].map((name) => [name, { type: 'boolean' as const }]),
  ])
  let typed: ReturnType<typeof parseArgs>
  try {
    typed = parseArgs({ args, options, allowPositionals: true })
  } catch (error) {
    throw new UsageError((error as Error).message)
  }
  const missing = required.filter((name) => typed.values[name] === undefined)
  if (missing.length > 0) throw new UsageError(`${missing.map((name) => `--${name}`).join(', ')} missing`)
  if (typed.positionals.length !== words) throw new UsageError(`takes ${words} words, not ${typed.positionals.length}`)
  return { options: typed.values as Typed['options'], words: typed.positionals }
}

/** One line for the operator. */
function explain(error: unknown): string {
  if (error instanceof ServiceError) {
    const details = (error.context.details ?? []).map(({ path, message }) => `${path || 'it'} ${message}`)
    return [error.message, ...details].join(' ')
  }
  return error instanceof Error ? error.message : String(error)
}

function usageOfAll(): string {
  const lines = Object.values(commands).map(({ usage, does }) => `  ${usage}\n      ${does}\n`)
  return `prompt-signals COMMAND\n\n${lines.join('')}\nWith --json every result is one JSON object on a line. Settings are environment variables.\n`
}
