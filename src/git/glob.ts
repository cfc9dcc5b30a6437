// `matchesGlob` of node:path would not do: Bun and Deno disagree about hidden files, so the same --create would create
// different prompts, and it has no error for a pattern with an unclosed brace.

const leadingSlashes = /^(?:\.?\/)+/

/** Compiles a pattern: `*` and `?` match within a folder, `**` any depth; `{a,b}` and `[a-z]` work. */
export function compileGlob(pattern: string): (path: string) => boolean {
  let source = ''
  let depth = 0
  for (let rest = pattern.replace(leadingSlashes, ''); rest !== ''; ) {
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

/** Names a prompt by its path, without the pattern's fixed folder and the extension. */
export function nameOfPath(pattern: string, path: string): string {
  const common = /^(?:[^*?{}[\]]*\/)?/.exec(pattern.replace(leadingSlashes, ''))?.[0] ?? ''
  const name = path.startsWith(common) ? path.slice(common.length) : path
  return name.replace(/(?<=[^/])\.[^./]+$/, '').slice(-maxNameLength)
}
