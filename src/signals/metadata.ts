import type { Detail } from '../errors.ts'

const maxBytes = 16 * 1024
const maxDepth = 32
const maxProblems = 10

type Scan = {
  /** The text of the `metadata` member exactly as it was sent. */
  raw: string | null
  problems: Detail[]
}

type Frame = { isArray: boolean; segment: string | number; awaitsKey: boolean }

const token = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s"{}[\],:]+/g

/**
 * Cuts the metadata out of a body that JSON.parse has accepted, and finds what Postgres could not keep.
 * The raw text is kept because numbers would not survive a trip through JavaScript's.
 */
export function scanMetadata(body: string): Scan {
  const frames: Frame[] = []
  let scan: Scan = { raw: null, problems: [] }
  let start = 0

  const inMetadata = () => frames[0]?.segment === 'metadata'
  const report = (message: string) => {
    if (scan.problems.length < maxProblems) scan.problems.push({ path: pointerTo(frames), message })
  }

  for (const { 0: text, index } of body.matchAll(token)) {
    const frame = frames.at(-1)
    if (text === '{' || text === '[') {
      if (inMetadata() && frames.length === maxDepth + 1) report(`must be nested at most ${maxDepth} deep`)
      frames.push({ isArray: text === '[', segment: text === '[' ? 0 : '', awaitsKey: text === '{' })
    } else if (text === '}' || text === ']') {
      frames.pop()
      if (inMetadata() && frames.length === 1) scan.raw = body.slice(start, index + 1)
    } else if (text === ',') {
      if (frame?.isArray) frame.segment = (frame.segment as number) + 1
      else if (frame) frame.awaitsKey = true
    } else if (frame?.awaitsKey) {
      frame.segment = JSON.parse(text)
      frame.awaitsKey = false
      if (inMetadata() && !isKeepableText(text)) report('must not have \\u0000 or half a surrogate pair in its name')
    } else if (text === ':') {
      if (frames.length === 1 && inMetadata()) {
        // Of a member that is given twice, the last counts, as it does for JSON.parse.
        scan = { raw: null, problems: [] }
        start = index + 1
      }
    } else if (inMetadata()) {
      if (text.startsWith('"')) {
        if (!isKeepableText(text)) report('must not hold \\u0000 or half a surrogate pair')
      } else if (!isKeepableNumber(text)) report('must be a number with fewer digits')
    }
  }

  if (scan.raw !== null) {
    scan.raw = scan.raw.trim()
    if (Buffer.byteLength(scan.raw) > maxBytes) {
      scan.problems = [{ path: '/metadata', message: `must be at most ${maxBytes} bytes of JSON` }]
    }
  }
  return scan
}

/** RFC 6901, cut short: a path is for a person to find the place by. */
function pointerTo(frames: Frame[]): string {
  const segments = frames.map(({ segment }) => String(segment).replaceAll('~', '~0').replaceAll('/', '~1'))
  return `/${segments.join('/')}`.slice(0, 200)
}

/** The body was decoded from UTF-8, so only an escape can bring in what text columns refuse. */
function isKeepableText(literal: string): boolean {
  if (!literal.includes('\\u')) return true
  const text: string = JSON.parse(literal)
  return text.isWellFormed() && !text.includes('\0')
}

/** Postgres keeps 131,072 digits before the point and 16,383 after it, and reads exponents below 2^30. */
function isKeepableNumber(literal: string): boolean {
  if (literal.length < 300 && !/e/i.test(literal)) return true
  const [, whole = '', fraction = '', exponent = '0'] = /^-?(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i.exec(literal) ?? []
  const shift = Number(exponent)
  const leadingZeros = (whole + fraction).search(/[1-9]|$/)
  const digitsBefore = whole.length - leadingZeros + shift
  const isZero = leadingZeros === whole.length + fraction.length
  return Math.abs(shift) < 2 ** 30 - 1 && (isZero || digitsBefore <= 131_072) && fraction.length - shift <= 16_383
}
