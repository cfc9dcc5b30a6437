import { type Detail, invalid } from '../errors.ts'

const maxSentBytes = 16 * 1024
/** More values than any metadata of this size has, with the rest of its signal. */
export const maxSignalValues = maxSentBytes
/** Postgres writes metadata with more spaces than it was sent with, and numbers without their exponents. */
export const maxExportedBytes = 512 * 1024
const maxDepth = 32
const maxProblems = 10
/**
 * The most digits of all numbers together when Postgres writes them out. Enough for the largest number that it stores, but
 * a list of 1e131071 would otherwise need hundreds of megabytes in a backup.
 */
export const maxDigits = 200 * 1024

/** Finds a number that JavaScript may write differently: of 16 digits, with an exponent, or with a zero at its end. */
const inexactNumber = /[[:,\s]-?\d(?:[\d.]{15}|[\d.]*(?:e|\.\d*0(?=[\s,\]}])))/i

const keepSource = (_: string, value: unknown, context?: { source?: string }): unknown =>
  typeof value === 'number' && String(value) !== context?.source ? JSON.rawJSON(context?.source ?? '') : value

/** Keeps the numbers of a body as they were sent, which jsonb stores exactly. `parsed` is what JSON.parse made of it. */
export const keepNumbers = <T>(body: string, parsed: T): T =>
  inexactNumber.test(body) ? JSON.parse(body, keepSource) : parsed

/** The JSON of metadata. Throws `validation_error` for values that Postgres cannot store. */
export function writeMetadata(metadata: object, maxBytes = maxSentBytes): string {
  const problems = findProblems(metadata, Math.max(maxDigits, maxBytes))
  if (problems.length > 0) throw unstorable(problems)
  const json = JSON.stringify(metadata)
  if (Buffer.byteLength(json) <= maxBytes) return json
  throw unstorable([{ path: '/metadata', message: `must be at most ${maxBytes} bytes of JSON` }])
}

const unstorable = (problems: Detail[]) => invalid('The metadata cannot be stored as sent.', problems)

/** Lists what Postgres cannot store, each with its JSON pointer (RFC 6901), which is truncated for people. */
function findProblems(metadata: object, digitsAllowed: number): Detail[] {
  const problems: Detail[] = []
  const steps = ['', 'metadata']
  let digitsLeft = digitsAllowed

  const report = (message: string) => {
    const path = steps.map((step) => step.replaceAll('~', '~0').replaceAll('/', '~1'))
    if (problems.length < maxProblems) problems.push({ path: path.join('/').slice(0, 200), message })
  }

  function visitText(text: string): void {
    if (!text.isWellFormed() || text.includes('\0')) report('must not contain \\u0000 or half a surrogate pair')
  }

  function visit(value: unknown, depth: number): void {
    if (typeof value === 'string') visitText(value)
    if (typeof value !== 'object' || value === null) return
    if (JSON.isRawJSON(value)) {
      const digits = digitsOf(value.rawJSON)
      if (digits > digitsLeft) report('must be a number with fewer digits')
      else digitsLeft -= digits
    } else if (depth > maxDepth) {
      report(`must be nested at most ${maxDepth} deep`)
    } else {
      for (const name of Object.keys(value)) {
        steps.push(name)
        visitText(name)
        visit((value as Record<string, unknown>)[name], depth + 1)
        steps.pop()
      }
    }
  }

  visit(metadata, 1)
  return problems
}

/**
 * The number of digits when written out; infinite if Postgres cannot store the number. It stores 131,072 digits before the
 * point and 16,383 after it, and parses exponents below 2^30.
 */
function digitsOf(literal: string): number {
  if (literal.length < 300 && !/e/i.test(literal)) return literal.length
  const [, whole = '', fraction = '', exponent = '0'] = /^-?(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i.exec(literal) ?? []
  const shift = Number(exponent)
  const leadingZeros = (whole + fraction).search(/[1-9]|$/)
  const isZero = leadingZeros === whole.length + fraction.length
  const before = isZero ? 1 : whole.length - leadingZeros + shift
  const after = fraction.length - shift
  const isStorable = Math.abs(shift) < 2 ** 30 - 1 && before <= 131_072 && after <= 16_383
  return isStorable ? Math.max(before, 1) + Math.max(after, 0) : Number.POSITIVE_INFINITY
}
