import type { QueryReader } from '../lib/query_reader.ts'
import { maxTextLength, parseText } from '../lib/texts.ts'

const expectedSearch = `a text of 1 to ${maxTextLength} characters, none of them a control character`

/** Reads the `search` of a list of prompts; null for none. */
export const readSearch = (reader: QueryReader): string | null => reader.read('search', parseText, expectedSearch)
