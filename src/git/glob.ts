/**
 * Turns a pattern of paths into a test: `*` and `?` stand for what is between two slashes, `**` for folders of any depth,
 * `{a,b}` for one of several, `[a-z]` for one character.
 */
export function compileGlob(pattern: string): (path: string) => boolean {
  let source = ''
  let depth = 0
  for (let rest = pattern.replace(/^(?:\.?\/)+/, ''); rest !== ''; ) {
    const [token, translation] = nextToken(rest, depth)
    if (token === '{') depth += 1
    if (token === '}' && depth > 0) depth -= 1
    source += translation
    rest = rest.slice(token.length)
  }
  if (depth > 0) throw new Error(`The pattern "${pattern}" has a { without its }`)
  const expression = new RegExp(`^${source}$`, 'su')
  return (path) => expression.test(path)
}

function nextToken(rest: string, depth: number): [token: string, translation: string] {
  const folders = /^\*\*+\/+/.exec(rest)
  if (folders) return [folders[0], '(?:[^/]+/)*']
  const anything = /^\*\*+/.exec(rest)
  if (anything) return [anything[0], '.*']
  const set = /^\[([!^]?)([^\]/]+)\]/.exec(rest)
  if (set) return [set[0], `[${set[1] ? '^/' : ''}${(set[2] as string).replace(/[\\[\]^]/g, '\\$&')}]`]
  const [character = ''] = rest
  if (character === '*') return ['*', '[^/]*']
  if (character === '?') return ['?', '[^/]']
  if (character === '{') return ['{', '(?:']
  if (character === '}' && depth > 0) return ['}', ')']
  if (character === ',' && depth > 0) return [',', '|']
  return [character, character.replace(/[\\^$.*+?()[\]{}|/]/, '\\$&')]
}

const maxNameLength = 200

/** The name of a prompt by its path: without the folder that all of the pattern have in common, and its extension. */
export function nameOfPath(pattern: string, path: string): string {
  const common = /^(?:[^*?{}[\]]*\/)?/.exec(pattern.replace(/^(?:\.?\/)+/, ''))?.[0] ?? ''
  const name = path.startsWith(common) ? path.slice(common.length) : path
  return name.replace(/(?<=[^/])\.[^./]+$/, '').slice(-maxNameLength)
}
