// `matchesGlob` of node:path would not do: Bun and Deno disagree about hidden files, so the same --create would create
// different prompts, and it has no error for a pattern with an unclosed brace.

const leadingSlashes = /^(?:\.?\/)+/

const tokens = /\*\*+\/+|\*\*+|\[([!^]?)([^\]/]+)\]|./gsu

/** Compiles a pattern: `*` and `?` match within a folder, `**` any depth; `{a,b}` and `[a-z]` work. */
export function compileGlob(pattern: string): (path: string) => boolean {
  let depth = 0
  const source = pattern.replace(leadingSlashes, '').replace(tokens, (token, negation?: string, set?: string) => {
    if (set !== undefined) return `[${negation ? '^/' : ''}${set.replace(/[\\[\]^]/g, '\\$&')}]`
    if (token.startsWith('**')) return token.endsWith('/') ? '(?:[^/]+/)*' : '.*'
    if (token === '*') return '[^/]*'
    if (token === '?') return '[^/]'
    if (token === '{') {
      depth += 1
      return '(?:'
    }
    if (token === ',' && depth > 0) return '|'
    if (token === '}' && depth > 0) {
      depth -= 1
      return ')'
    }
    return token.replace(/[\\^$.*+?()[\]{}|/]/, '\\$&')
  })
  if (depth > 0) throw new Error(`The pattern "${pattern}" has a { without its }`)
  const expression = new RegExp(`^${source}$`, 'su')
  return (path) => expression.test(path)
}

const maxNameLength = 200

/** Names a prompt by its path, without the pattern's fixed folder and the extension. */
export function nameOfPath(pattern: string, path: string): string {
  const common = /^(?:[^*?{}[\]]*\/)?/.exec(pattern.replace(leadingSlashes, ''))?.[0] ?? ''
  const name = path.startsWith(common) ? path.slice(common.length) : path
  return name.replace(/(?<=[^/])\.[^./]+$/, '').slice(-maxNameLength)
}
