import { type Detail, invalid } from '../errors.ts'

export const [quote, comma] = [0x22, 0x2c] as const
const [colon, backslash] = [0x3a, 0x5c] as const
export const [openList, closeList, openObject, closeObject] = [0x5b, 0x5d, 0x7b, 0x7d] as const

const maxSentBytes = 16 * 1024
/** Postgres writes metadata with more spaces than it was sent with, and numbers without their exponents. */
export const maxExportedBytes = 512 * 1024
const maxDepth = 32
const maxProblems = 10
/**
 * The most digits of all numbers together when Postgres writes them out. Enough for any one number that it stores, but a
 * list of 1e131071 would otherwise need hundreds of megabytes in a backup.
 */
export const maxDigits = 160 * 1024
/** A token of this length is too short for a number of many digits. */
const shortWord = 3

/** Cuts the metadata out of a signal's JSON. Throws `validation_error` for values that Postgres cannot store. */
export function cutMetadata(signal: string, maxBytes?: number): string {
  const { raw, problems } = scanMetadata(signal, maxBytes)
  if (problems.length > 0) throw invalid('The metadata cannot be stored as sent.', problems)
  return raw
}

/**
 * Cuts the metadata out of a body that JSON.parse has accepted, and finds the values that Postgres cannot store. The raw
 * JSON is kept, because JavaScript would change large numbers.
 */
export function scanMetadata(body: string, maxBytes = maxSentBytes): { raw: string; problems: Detail[] } {
  const hasEscapes = body.includes('\\')
  let problems: { until: number; message: string }[] = []
  let depth = 0
  let awaitsName = false
  let isMetadata = false
  let digits = 0
  let [start, stop] = [0, 0]

  const report = (until: number, message: string) => {
    if (problems.length < maxProblems) problems.push({ until, message })
  }

  for (let at = 0; at < body.length; ) {
    const code = body.charCodeAt(at)
    const end = endOfToken(body, at, code)
    if (code === openObject || code === openList) {
      depth += 1
      awaitsName = depth === 1
      if (isMetadata && depth === maxDepth + 2) report(at, `must be nested at most ${maxDepth} deep`)
    } else if (code === closeObject || code === closeList) {
      depth -= 1
      if (isMetadata && depth === 1) stop = end
    } else if (code === comma) {
      awaitsName = depth === 1
    } else if (code === colon && isMetadata && depth === 1) {
      // Of a member given twice the last one counts, as in JSON.parse.
      problems = []
      digits = 0
      start = end
    } else if (code === quote) {
      if (awaitsName) {
        isMetadata = hasEscapes ? JSON.parse(body.slice(at, end)) === 'metadata' : body.startsWith('"metadata"', at)
      }
      awaitsName = false
      if (isMetadata && hasEscapes && !isStorableText(body.slice(at, end))) {
        report(end, 'must not contain \\u0000 or half a surrogate pair')
      }
    } else if (isMetadata && end - at > shortWord) {
      const more = digitsOf(body.slice(at, end))
      if (digits + more > Math.max(maxDigits, maxBytes)) report(at, 'must be a number with fewer digits')
      else digits += more
    }
    at = end
  }

  const raw = body.slice(start, stop).trim()
  if (Buffer.byteLength(raw) > maxBytes) {
    return { raw, problems: [{ path: '/metadata', message: `must be at most ${maxBytes} bytes of JSON` }] }
  }
  return { raw, problems: problems.map(({ until, message }) => ({ path: pointerTo(body, start, until), message })) }
}

/** The JSON pointer (RFC 6901) to the token at `until`, or to the member whose name ends there. Truncated, for people. */
function pointerTo(body: string, start: number, until: number): string {
  const frames: { step: string | number; awaitsName: boolean }[] = []
  for (let at = start; at < until; ) {
    const code = body.charCodeAt(at)
    const end = endOfToken(body, at, code)
    const frame = frames.at(-1)
    if (code === openObject) frames.push({ step: '', awaitsName: true })
    else if (code === openList) frames.push({ step: 0, awaitsName: false })
    else if (code === closeObject || code === closeList) frames.pop()
    else if (code === comma && frame) {
      if (typeof frame.step === 'number') frame.step += 1
      else frame.awaitsName = true
    } else if (code === quote && frame?.awaitsName) {
      frame.step = JSON.parse(body.slice(at, end)).replaceAll('~', '~0').replaceAll('/', '~1')
      frame.awaitsName = false
    }
    at = end
  }
  return ['/metadata', ...frames.map(({ step }) => step)].join('/').slice(0, 200)
}

/** The body was decoded from UTF-8, so only an escape can contain a character that Postgres rejects. */
function isStorableText(literal: string): boolean {
  if (!literal.includes('\\u')) return true
  const text: string = JSON.parse(literal)
  return text.isWellFormed() && !text.includes('\0')
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

/** The end of the token that starts here. Whitespace and punctuation are one character each. */
export function endOfToken(text: string, at: number, code: number): number {
  if (code === quote) return endOfString(text, at)
  let end = at + 1
  if (isPartOfWord(code)) while (end < text.length && isPartOfWord(text.charCodeAt(end))) end += 1
  return end
}

/** Jumps from quote to quote, which is faster than looking at each character. */
function endOfString(text: string, at: number): number {
  for (let end = text.indexOf('"', at + 1); ; end = text.indexOf('"', end + 1)) {
    let escapes = 0
    while (text.charCodeAt(end - 1 - escapes) === backslash) escapes += 1
    if (escapes % 2 === 0) return end + 1
  }
}

/** Whether the character belongs to a number, true, false or null. */
const isPartOfWord = (code: number): boolean =>
  code > 0x20 &&
  code !== comma &&
  code !== colon &&
  code !== closeList &&
  code !== closeObject &&
  code !== openList &&
  code !== openObject
