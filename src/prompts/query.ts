import type { QueryParser } from '../lib/query_parser.ts'
import { maxSearchLength } from './schema.ts'

const expectedSearch = `a text of 1 to ${maxSearchLength} characters, none of them a control character`

/** Parses the `search` of a list of prompts; null for none. */
export const parseSearch = (parser: QueryParser): string | null =>
  parser.parse('search', parseSearchText, expectedSearch)

function parseSearchText(given: string): string | undefined {
  const text = given.trim()
  const isKept = text !== '' && text.length <= maxSearchLength && !/\p{Cc}/u.test(text) && text.isWellFormed()
  return isKept ? text : undefined
}
