/** Of ECMAScript 2026, and not yet in TypeScript's own declarations. */
interface JSON {
  rawJSON(text: string): object
  isRawJSON(value: unknown): value is { rawJSON: string }
}
