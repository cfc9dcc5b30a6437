import type { Detail } from '../errors.ts'

const maxBytes = 16 * 1024
const maxDepth = 32
const maxProblems = 10

type Scan = {
  /** The text of the `metadata` member exactly as it was sent. */
  raw: string | null
  problems: Detail[]
}

/** An object or a list that the scan is inside of. */
type Frame = {
  /** In a list, which item; in an object, where the text of the name of the current member is. */
  isArray: boolean
  index: number
  nameStart: number
  nameEnd: number
  awaitsName: boolean
}

const [quote, comma, colon, backslash] = [0x22, 0x2c, 0x3a, 0x5c]
const [openList, closeList, openObject, closeObject] = [0x5b, 0x5d, 0x7b, 0x7d]

/**
 * Cuts the metadata out of a body that JSON.parse has accepted, and finds what Postgres could not keep.
 * The raw text is kept because numbers would not survive a trip through JavaScript's.
 */
export function scanMetadata(body: string): Scan {
  const frames: Frame[] = []
  let scan: Scan = { raw: null, problems: [] }
  let isMetadata = false
  let start = 0

  const report = (message: string) => {
    if (scan.problems.length < maxProblems) scan.problems.push({ path: pointerTo(body, frames), message })
  }

  for (let at = 0; at < body.length; ) {
    const code = body.charCodeAt(at)
    const frame = frames.at(-1)
    const end = endOfToken(body, at, code)
    if (code === openObject || code === openList) {
      if (isMetadata && frames.length === maxDepth + 1) report(`must be nested at most ${maxDepth} deep`)
      const isArray = code === openList
      frames.push({ isArray, index: 0, nameStart: 0, nameEnd: 0, awaitsName: !isArray })
    } else if (code === closeObject || code === closeList) {
      frames.pop()
      if (isMetadata && frames.length === 1) scan.raw = body.slice(start, end)
    } else if (code === comma && frame) {
      if (frame.isArray) frame.index += 1
      else frame.awaitsName = true
    } else if (code === quote && frame?.awaitsName) {
      frame.nameStart = at
      frame.nameEnd = end
      frame.awaitsName = false
      if (frames.length === 1) isMetadata = JSON.parse(body.slice(at, end)) === 'metadata'
      if (isMetadata && !isKeepableText(body, at, end)) report(`must not have ${unkeepable} in its name`)
    } else if (code === colon) {
      if (isMetadata && frames.length === 1) {
        // Of a member that is given twice, the last counts, as it does for JSON.parse.
        scan = { raw: null, problems: [] }
        start = end
      }
    } else if (code > 0x20 && isMetadata) {
      if (code === quote) {
        if (!isKeepableText(body, at, end)) report(`must not hold ${unkeepable}`)
      } else if (!isKeepableNumber(body.slice(at, end))) report('must be a number with fewer digits')
    }
    at = end
  }

  if (scan.raw !== null) {
    scan.raw = scan.raw.trim()
    if (Buffer.byteLength(scan.raw) > maxBytes) {
      scan.problems = [{ path: '/metadata', message: `must be at most ${maxBytes} bytes of JSON` }]
    }
  }
  return scan
}

/** Where the token ends that begins here; whitespace and punctuation are one character each. */
function endOfToken(body: string, at: number, code: number): number {
  if (code === quote) {
    let end = at + 1
    for (let next = body.charCodeAt(end); next !== quote; next = body.charCodeAt(end)) {
      end += next === backslash ? 2 : 1
    }
    return end + 1
  }
  let end = at + 1
  if (isPartOfWord(code)) while (end < body.length && isPartOfWord(body.charCodeAt(end))) end += 1
  return end
}

/** Of a number, true, false or null. */
const isPartOfWord = (code: number): boolean =>
  code > 0x20 &&
  code !== comma &&
  code !== colon &&
  code !== closeList &&
  code !== closeObject &&
  code !== openList &&
  code !== openObject

/** RFC 6901, cut short: a path is for a person to find the place by. */
function pointerTo(body: string, frames: Frame[]): string {
  const segments = frames.map(({ isArray, index, nameStart, nameEnd }) =>
    isArray ? index : JSON.parse(body.slice(nameStart, nameEnd)).replaceAll('~', '~0').replaceAll('/', '~1'),
  )
  return `/${segments.join('/')}`.slice(0, 200)
}

const unkeepable = '\\u0000 or half a surrogate pair'

/** The body was decoded from UTF-8, so only an escape can bring in what text columns refuse. */
function isKeepableText(body: string, start: number, end: number): boolean {
  const literal = body.slice(start, end)
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
