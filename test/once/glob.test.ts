import { expect, test } from 'bun:test'
import { compileGlob } from '../../src/git/glob.ts'

test.each([
  ['*.md', 'a.md .md', 'a.txt a/b.md'],
  ['./prompts/**/*.md', 'prompts/a.md prompts/a/b/c.md', 'a.md prompts//a.md prompts/a.txt'],
  ['prompts/**', 'prompts/a prompts/a/b', 'prompts other/a'],
  ['?.md', 'a.md 😀.md', 'ab.md /.md'],
  ['[!a-c]{.md,/{x,y*}}', 'd.md d/x d/yes', 'a.md d/z //x'],
  ['a,b}[c', 'a,b}[c', 'a'],
])('the pattern %s matches files', (pattern, matching, others) => {
  const matches = compileGlob(pattern)
  const paths = [...matching.split(' '), ...others.split(' ')]
  expect(paths.filter(matches)).toEqual(matching.split(' '))
})

// With backtracking, any of these would outlast the test.
test.each(['*a', '**/', '**a', '{*a,*}', '{**/,a*/}'])(
  'a pattern with %s many times does not hold the program',
  (part) => {
    const matches = compileGlob(`${part.repeat(50)}b`)
    expect([`${'a'.repeat(500)}c`, `${'a/'.repeat(250)}c`, `${'a'.repeat(200)}b`].map(matches)).toContain(false)
  },
)
