import type { QueryParser } from '../lib/query_parser.ts'
import { maxTextLength, parseText } from '../lib/texts.ts'

const expectedSearch = `a text of 1 to ${maxTextLength} characters, none of them a control character`

/** Parses the `search` of a list of prompts; null for none. */
export const parseSearch = (parser: QueryParser): string | null => parser.parse('search', parseText, expectedSearch)
