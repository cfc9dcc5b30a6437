const unitMs: Record<string, number> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** Parses a duration such as `90s`, `30m`, `24h` or `7d` into milliseconds. Undefined for anything else. */
export function parseDuration(text: string): number | undefined {
  const [, number, unit] = /^(\d{1,6})([smhd])$/.exec(text) ?? []
  return number === undefined || unit === undefined ? undefined : Number(number) * (unitMs[unit] as number)
}
