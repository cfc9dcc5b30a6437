import { expect, test } from 'bun:test'
import { settings } from '../../src/config.ts'

const readme = await Bun.file('README.md').text()

test('the table of settings in the README is the one the program reads', () => {
  const rows = readme.split('\n').filter((line) => /^\| `[A-Z_]+` /.test(line))
  const expected = Object.entries(settings).map(([name, { type, fallback, secret, meaning }]) => {
    const names = secret ? `\`${name}\` or \`${name}_FILE\`` : `\`${name}\``
    return `| ${names} | ${type} | ${fallback === undefined ? '' : `\`${fallback}\``} | ${meaning} |`
  })
  expect(rows).toEqual(expected)
})
