import { invalid } from '../errors.ts'
import { showHidden } from './hidden.ts'

export const maxTextLength = 200

/** Removes control characters, which could steer a terminal, and shows hidden ones. */
export const oneLine = (text: string): string => showHidden(text.replace(/\p{Cc}+/gu, ' '))

/** Whether the text has no control characters and no half of a surrogate pair, which Postgres does not store. */
export const isPlain = (text: string): boolean => !/\p{Cc}/u.test(text) && text.isWellFormed()

/** Cuts a text, and drops half of a surrogate pair that the cut went through. */
export const cut = (text: string, length: number | undefined): string =>
  text.slice(0, length).replace(/[\ud800-\udbff]$/, '')

/** Trims a short text of one line. Undefined for any other. */
export function parseText(text: string): string | undefined {
  const trimmed = text.trim()
  return trimmed !== '' && trimmed.length <= maxTextLength && isPlain(trimmed) ? trimmed : undefined
}

export function requireName(name: string, path = '/name'): string {
  const parsed = parseText(name)
  if (parsed !== undefined) return parsed
  const message = `must have 1 to ${maxTextLength} characters, none of them a control character`
  throw invalid('The name is not valid.', [{ path, message }])
}

export const number = (count: number): string => count.toLocaleString('en-GB')

/** A number and its noun: 1 entry, 2,000 entries. */
export const counted = (count: number, one: string, many = `${one}s`): string =>
  `${number(count)} ${count === 1 ? one : many}`
