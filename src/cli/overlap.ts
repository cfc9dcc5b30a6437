import { type Arguments, UsageError } from './command.ts'

const unitMs: Record<string, number> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** How long the old secret of a rotation stays valid, in milliseconds. */
export function overlapOption(args: Arguments): number {
  const text = args.text('overlap') ?? '24h'
  const [, number, unit] = /^(\d{1,6})([smhd])$/.exec(text) ?? []
  if (!unit) throw new UsageError(`--overlap must be a duration such as 90s, 30m, 24h or 7d, not "${text}"`)
  return Number(number) * (unitMs[unit] as number)
}
