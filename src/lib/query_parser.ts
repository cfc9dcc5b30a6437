import { type Detail, invalid } from '../errors.ts'

/** Parses the parameters of a query. One that makes no sense is rejected, because ignoring it would widen the result. */
export class QueryParser {
  readonly #problems: Detail[] = []

  constructor(private readonly given: URLSearchParams) {}

  /** The value of a parameter as it is parsed; null when it is not given, or is a problem. */
  parse<T>(name: string, parse: (text: string) => T | undefined, expected: string): T | null {
    const [text, ...others] = this.given.getAll(name)
    if (text === undefined) return null
    const value = others.length === 0 ? parse(text) : undefined
    if (value === undefined) this.addProblem(name, `must be ${expected}, and given once`)
    return value ?? null
  }

  /** Says what a parameter must be. */
  addProblem(path: string, message: string): void {
    this.#problems.push({ path, message })
  }

  /** Throws `validation_error` naming each parameter with a problem. */
  requireValid(): void {
    if (this.#problems.length > 0) throw invalid('The query is not valid.', this.#problems.slice(0, 10))
  }
}

export const oneOf =
  <T extends string>(choices: readonly T[]) =>
  (text: string): T | undefined =>
    choices.find((choice) => choice === text)

/** Parses the id of a row, which is no greater than what a number holds exactly. */
export function parseId(text: string): number | undefined {
  const id = /^[1-9]\d{0,15}$/.test(text) ? Number(text) : Number.NaN
  return Number.isSafeInteger(id) ? id : undefined
}
