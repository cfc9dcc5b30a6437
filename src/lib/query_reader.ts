import { type Detail, invalid } from '../errors.ts'

export type QueryReader = {
  /** The value of a parameter as it is parsed; null when it is not given, or is a problem. */
  read<T>(name: string, parse: (text: string) => T | undefined, expected: string): T | null
  /** Says what a parameter must be. */
  addProblem(name: string, message: string): void
  /** Throws `validation_error` naming each parameter with a problem. */
  requireValid(): void
}

/** Reads the parameters of a query. One that makes no sense is rejected, because ignoring it would widen the result. */
export function createQueryReader(given: URLSearchParams): QueryReader {
  const problems: Detail[] = []
  const addProblem = (path: string, message: string): void => void problems.push({ path, message })
  return {
    addProblem,
    read(name, parse, expected) {
      const values = given.getAll(name)
      if (values.length === 0) return null
      const value = values.length === 1 ? parse(values[0] as string) : undefined
      if (value === undefined) addProblem(name, `must be ${expected}, and given once`)
      return value ?? null
    },
    requireValid() {
      if (problems.length > 0) throw invalid('The query is not valid.', problems.slice(0, 10))
    },
  }
}
