// `matchesGlob` of node:path would not do: Bun and Deno disagree about hidden files, so the same --create would create
// different prompts, and it has no error for a pattern with an unclosed brace. A regular expression takes exponential time
// for a pattern with many stars.

/** Where a match that begins at a place of the path ends; undefined if there is none. */
type Step = (path: string[], start: number) => number | undefined

/** Part of a pattern: from all places where it may begin to all places where it then ends. */
type Part = (path: string[], starts: Set<number>) => Set<number>

const once =
  (step: Step): Part =>
  (path, starts) =>
    new Set([...starts].flatMap((start) => step(path, start) ?? []))

const repeat =
  (step: Step): Part =>
  (path, starts) => {
    const ends = new Set(starts)
    // Also visits the places that are added meanwhile.
    for (const start of ends) {
      const end = step(path, start)
      if (end !== undefined) ends.add(end)
    }
    return ends
  }

const sequence =
  (parts: Part[]): Part =>
  (path, starts) =>
    parts.reduce((reached, part) => part(path, reached), starts)

const either =
  (parts: Part[]): Part =>
  (path, starts) =>
    new Set(parts.flatMap((part) => [...part(path, starts)]))

const character =
  (accepts: (one: string) => boolean): Step =>
  (path, start) =>
    start < path.length && accepts(path[start] as string) ? start + 1 : undefined

const folder: Step = (path, start) => {
  const slash = path.indexOf('/', start)
  return slash > start ? slash + 1 : undefined
}

const inFolder = character((one) => one !== '/')
const wildcards: Record<string, Part> = {
  '?': once(inFolder),
  '*': repeat(inFolder),
  '**': repeat(character(() => true)),
  '**/': repeat(folder),
}

const leadingSlashes = /^(?:\.?\/)+/

const tokens = /\*\*+\/+|\*\*+|\[[!^]?[^\]/]+\]|./gsu

function compileToken(token: string): Part {
  const [, negation, set] = /^\[([!^]?)(.+)\]$/su.exec(token) ?? []
  if (set !== undefined) {
    const expression = new RegExp(`[${negation ? '^/' : ''}${set.replace(/[\\[\]^]/g, '\\$&')}]`, 'u')
    return once(character((one) => expression.test(one)))
  }
  return wildcards[token.replace(/\*\*+/, '**').replace(/\/+$/, '/')] ?? once(character((one) => one === token))
}

/** Compiles a pattern: `*` and `?` match within a folder, `**` any depth; `{a,b}` and `[a-z]` work. */
export function compileGlob(pattern: string): (path: string) => boolean {
  // The choices of each open brace, and around them the pattern itself.
  const open: Part[][][] = [[[]]]
  for (const [token] of pattern.replace(leadingSlashes, '').matchAll(tokens)) {
    const choices = open.at(-1) as Part[][]
    if (token === '{') open.push([[]])
    else if (token === ',' && open.length > 1) choices.push([])
    else if (token === '}' && open.length > 1) {
      open.pop()
      open
        .at(-1)
        ?.at(-1)
        ?.push(either(choices.map(sequence)))
    } else choices.at(-1)?.push(compileToken(token))
  }
  if (open.length > 1) throw new Error(`The pattern "${pattern}" has a { without its }`)
  const whole = sequence((open[0] as Part[][])[0] as Part[])
  return (path) => {
    const characters = [...path]
    return whole(characters, new Set([0])).has(characters.length)
  }
}

const maxNameLength = 200

/** Names a prompt by its path, without the pattern's fixed folder and the extension. */
export function nameOfPath(pattern: string, path: string): string {
  const common = /^(?:[^*?{}[\]]*\/)?/.exec(pattern.replace(leadingSlashes, ''))?.[0] ?? ''
  const name = path.startsWith(common) ? path.slice(common.length) : path
  return name.replace(/(?<=[^/])\.[^./]+$/, '').slice(-maxNameLength)
}
