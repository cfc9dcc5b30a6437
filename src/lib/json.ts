import { invalid, type ServiceError } from '../errors.ts'

/**
 * Keeps numbers as they are written that a double would change: metadata may hold ids of 64 bits, 0.10 and 1e400. But 25.0 is
 * a limit like 25.
 */
export const keepExactNumbers = (_: string, value: unknown, { source = '' }: { source?: string } = {}): unknown =>
  typeof value === 'number' && !Number.isSafeInteger(value) && String(value) !== source ? JSON.rawJSON(source) : value

/** Twice the size of a signal. Small bodies reserve no memory, so that large ones cannot lock them out. */
export const smallBody = 32 * 1024
/** Enough for the files of the largest push. */
const defaultMaxValues = 75_000

export const invalidBody = (message: string): ServiceError =>
  invalid('The request body is not valid.', [{ path: '', message }])

export const boundsOn = (maxValues: number): string => `must have at most ${maxValues} values, nested at most 64 deep`

type Reviver = (key: string, value: unknown) => unknown

/** Parses JSON that cannot block the event loop for long: it is small, or has a bounded number of values. */
export function parseJson(json: string, reviver?: Reviver, maxValues = defaultMaxValues): unknown {
  if (!isBounded(json, maxValues)) throw invalidBody(boundsOn(maxValues))
  try {
    return JSON.parse(json, reviver)
  } catch {
    throw invalidBody('must be JSON')
  }
}

const [quote, backslash, comma] = [34, 92, 44]
const maxDepth = 64

/**
 * Whether JSON is small, or has at most this many values, nested at most 64 deep. To parse a value takes time and a hundred
 * bytes of memory, however short it is.
 */
export function isBounded(json: string, maxValues: number): boolean {
  if (json.length <= smallBody) return true
  let [values, depth] = [1, 0]
  for (let at = 0; at < json.length; at++) {
    const code = json.charCodeAt(at)
    if (code === quote) at = endOfString(json, at)
    else if (code === comma) values += 1
    else if (isClosing(code)) depth -= 1
    else if (isOpening(code)) {
      values += 1
      depth += 1
    }
    if (values > maxValues || depth > maxDepth) return false
  }
  return true
}

/**
 * Splits JSON of an object, so that the elements of its lists can be parsed one by one. In `outer`, each element is replaced
 * with its place in `elements`. Null if there are more than `maxElements`.
 */
export function splitLists(json: string, maxElements: number): { outer: string; elements: string[] } | null {
  const elements: string[] = []
  let [outer, copied, depth, start, isList] = ['', 0, 0, 0, false]
  for (let at = 0; at < json.length; at++) {
    const code = json.charCodeAt(at)
    if (code === quote) at = endOfString(json, at)
    else if (isOpening(code)) {
      depth += 1
      if (depth === 2) [start, isList] = [at + 1, json[at] === '[']
    } else if (code === comma || isClosing(code)) {
      if (depth === 2 && isList) {
        const element = json.slice(start, at)
        if (element.trim() !== '') {
          outer += json.slice(copied, start) + elements.length
          if (elements.push(element) > maxElements) return null
          copied = at
        }
        start = at + 1
      }
      if (code !== comma) depth -= 1
    }
  }
  return { outer: outer + json.slice(copied), elements }
}

// A bracket differs from a brace by one bit.
const isOpening = (code: number): boolean => (code | 32) === 123
const isClosing = (code: number): boolean => (code | 32) === 125

/** The place of the quote that ends the string. */
function endOfString(json: string, start: number): number {
  for (let at = start + 1; at < json.length; at++) {
    const code = json.charCodeAt(at)
    if (code === quote) return at
    if (code === backslash) at += 1
  }
  return json.length
}
