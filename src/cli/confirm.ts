import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { type Arguments, UsageError } from './command.ts'

/** Requires --yes or --dry-run, unless a person can be asked. */
export function requireConsent(args: Arguments): void {
  if (args.options.yes || args.options['dry-run'] || process.stdin.isTTY) return
  const count = args.grammar.options.some(({ name }) => name === 'dry-run') ? ', or --dry-run to see how much' : ''
  throw new UsageError(`give --yes to erase without a question${count}`)
}

/** Asks on the terminal, unless --yes was given. Throws for anything but y or yes, and for the end of the input. */
export async function confirm(args: Arguments, question: string, signal: AbortSignal): Promise<void> {
  if (args.options.yes) return
  process.stderr.write(`${question} [y/N] `)
  const lines = createInterface({ input: process.stdin })
  try {
    const [answer] = await Promise.race([once(lines, 'line', { signal }), once(lines, 'close', { signal })])
    if (!/^y(es)?$/i.test(answer?.trim() ?? '')) throw new Error('Nothing was erased.')
  } finally {
    lines.close()
  }
}
