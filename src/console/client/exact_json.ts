/** Parses JSON, and keeps numbers as they are written where a parsed one would be another; older browsers round them. */
export const parseExactly = (text: string): unknown =>
  JSON.parse(text, (_, value: unknown, context?: { source?: string }) =>
    typeof value === 'number' && context?.source !== undefined && String(value) !== context.source
      ? JSON.rawJSON(context.source)
      : value,
  )
