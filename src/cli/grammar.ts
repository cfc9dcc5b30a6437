export type Option = {
  name: string
  /** What the usage line shows for the value; null for a flag. */
  value: string | null
  isRequired: boolean
  multiple: boolean
  /** Options in one bracket belong together; null outside of brackets and for alternatives. */
  bracket: number | null
}

export type Grammar = { options: Option[]; positionals: string[]; least: number }

/** An option in a usage line. Its value ends at a space, a bracket or an alternative; a flag has none. */
const optionPattern = /--([a-z-]+)( [^-[\s]\S*?(?=\s|\]|\|--|$))?/g

/**
 * Derives the grammar of a command from its usage line. An option is optional in brackets or with an alternative after
 * `|`, and repeatable when its bracket is followed by `…`. It takes no other value than its alternatives in small letters.
 * Positional arguments are in capitals. ORG and PROMPT stand for an organisation and a prompt, by id or by name.
 */
export function parseUsage(usage: string): Grammar {
  const options = [...usage.matchAll(optionPattern)].map(({ 0: option, 1: name = '', 2: value, index }) => {
    const [before, after] = [usage.slice(0, index), usage.slice(index + option.length)]
    const isInBrackets = before.lastIndexOf('[') > before.lastIndexOf(']')
    const hasAlternative = before.endsWith('|') || after.startsWith('|')
    return {
      name,
      value: value?.trim() ?? null,
      isRequired: !isInBrackets && !hasAlternative,
      multiple: after.startsWith(']…'),
      bracket: isInBrackets && !hasAlternative ? before.lastIndexOf('[') : null,
    }
  })
  const words = usage.replaceAll(optionPattern, '').match(/\[?\b[A-Z]+/g) ?? []
  const least = words.filter((word) => !word.startsWith('[')).length
  return { options, positionals: words.map((word) => word.replace('[', '')), least }
}

/** What is wrong with the options that were given, as far as the usage line tells; undefined if nothing is. */
export function findProblem({ options }: Grammar, given: Record<string, unknown>): string | undefined {
  const isGiven = (name: string) => given[name] !== undefined
  const missing = options.filter(({ name, isRequired }) => isRequired && !isGiven(name))
  if (missing.length > 0) return `${missing.map(({ name }) => `--${name}`).join(', ')} missing`
  for (const { name, value, bracket } of options.filter((option) => isGiven(option.name))) {
    const needed = options.find((other) => bracket !== null && other.bracket === bracket && !isGiven(other.name))
    if (needed) return `--${name} needs --${needed.name}`
    const choices = /^[a-z_]+\|[a-z_|]+$/.exec(value ?? '')?.[0].split('|')
    if (choices?.includes(given[name] as string) === false) {
      return `--${name} must be one of ${choices.join(', ')}, not "${given[name]}"`
    }
  }
  return undefined
}

/** The option for a place in a request: --origin for /origins/0, --branch for /branch_name. */
export function optionFor({ options, positionals }: Grammar, path: string): Option | undefined {
  // Options are no part of a body that was given as JSON.
  if (positionals.includes('JSON')) return undefined
  const words = path.replace(/^\//, '').replace(/[/_]/g, '-')
  const fitting = options.filter(({ name }) => new RegExp(`^${name}(s?$|s?[-.])`).test(words))
  return fitting.toSorted((a, b) => b.name.length - a.name.length)[0]
}

/** Places without an option stay. */
function nameOption(grammar: Grammar, path: string): string {
  const option = optionFor(grammar, path)
  const place = path.replace(/^\//, '').replace(/_id$/, '').toUpperCase()
  if (grammar.positionals.includes(place)) return place
  return option ? `--${option.name}` : path || 'it'
}

/** Describes the details of an error in terms of the options. */
export function describeDetails(grammar: Grammar, details: { path: string; message: string }[] = []): string {
  const inWords = (message: string) =>
    message.replace(/\b[a-z]+(_[a-z]+)+\b/g, (word) => {
      const name = nameOption(grammar, word)
      return name === `--${word.replaceAll('_', '-')}` ? name : word
    })
  return details.map(({ path, message }) => `${nameOption(grammar, path)} ${inWords(message)}`).join('; ')
}
