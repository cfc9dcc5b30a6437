/** A number that JavaScript cannot represent exactly, as text. */
export class ExactNumber {
  constructor(readonly text: string) {}
}

type Reviver = (this: unknown, key: string, value: unknown, context?: { source?: string }) => unknown

/** Parses JSON, and keeps numbers as they are written where a parsed one would be another; older browsers round them. */
export const parseExactly = (text: string): unknown => JSON.parse(text, keepExact)

const keepExact: Reviver = (_, value, context) =>
  typeof value === 'number' && context?.source !== undefined && String(value) !== context.source
    ? new ExactNumber(context.source)
    : value
