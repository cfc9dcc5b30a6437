import type { QueryReader } from '../lib/query_reader.ts'
import { maxSearchLength } from './schema.ts'

const expectedSearch = `a text of 1 to ${maxSearchLength} characters, none of them a control character`

/** Reads the `search` of a list of prompts; null for none. */
export const readSearch = (reader: QueryReader): string | null => reader.read('search', parseSearch, expectedSearch)

function parseSearch(given: string): string | undefined {
  const text = given.trim()
  const isKept = text !== '' && text.length <= maxSearchLength && !/\p{Cc}/u.test(text) && text.isWellFormed()
  return isKept ? text : undefined
}
