import { expect, test } from 'bun:test'
import { nameOf } from '../../src/cli/command.ts'
import { parseUsage } from '../../src/cli/grammar.ts'
import { loadCommands } from '../../src/cli/groups.ts'
import { describeOptions } from '../../src/cli/help.ts'
import { explanations } from '../../src/cli/options.ts'
import { type AnyColumn, createOutput } from '../../src/cli/output.ts'

const commands = await loadCommands()

test.each(commands.map((command) => [nameOf(command), command] as const))(
  '%s --help explains every option and argument in at most 120 columns',
  (_, command) => {
    const lines = describeOptions(command).split('\n').slice(0, -1)
    const { options, positionals } = parseUsage(command.usage)
    const text = lines.join('\n').replaceAll(/\n {6,}/g, '  ')
    const explained = [...text.matchAll(/^ {2}(?:--)?(\S+)(?: \S+)? {2,}\S/gm)].map(([, name]) => name)
    expect(explained).toEqual([...positionals, ...options.map(({ name }) => name), 'json'])
    expect(lines.filter((line) => line.length > 120)).toEqual([])
  },
)

test('every explanation is of an option that exists', () => {
  const known = commands.flatMap((command) => {
    const { options, positionals } = parseUsage(command.usage)
    const keys = [...positionals, ...options.map(({ name }) => `--${name}`), '--json']
    const name = nameOf(command)
    return keys.flatMap((key) => [key, `${name.split(' ')[0]} ${key}`, `${name} ${key}`])
  })
  expect(Object.keys(explanations).filter((key) => !known.includes(key))).toEqual([])
})

/** What a person is shown. */
function show(write: (output: ReturnType<typeof createOutput>) => void): string {
  let text = ''
  const out = (more: string) => {
    text += more
  }
  write(createOutput(false, { out, err: out }))
  return text
}

const draw = <T extends object>(rows: T[], columns: AnyColumn<T>[]): string[] =>
  show((output) => output.table(rows, columns))
    .split('\n')
    .slice(0, -1)

test('a table fits 120 columns: it cuts the widest texts, leaves out empty columns, and shows times to the minute', () => {
  const row = { id: 'i'.repeat(30), name: 'n'.repeat(80), path: 'p'.repeat(60), at: new Date(0), none: null }
  const lines = draw([row], ['id', 'name…', 'path…', 'at', 'none'])
  expect(lines.map((line) => line.length)).toEqual([106, 120])
  expect(lines[1]).toBe(`${row.id}  ${'n'.repeat(33)}…  ${'p'.repeat(33)}…  1970-01-01 00:00`)
  expect(draw([], ['id'])).toEqual(['id'])
  expect(draw([{ name: `${'n'.repeat(118)}😀!` }], ['name…'])[1]).toBe(`${'n'.repeat(118)}…`)
})

test('counts above 999 have a comma, and numbers that are pasted into other commands have none', () => {
  const row = { id: 12_345, pr_number: 1_234, used: 2_279, monthly_limit: 1_000_000 }
  expect(draw([row], ['id', 'pr_number', 'used', 'monthly_limit'])[1]).toBe('12345  1234       2,279  1,000,000')
  expect(show((output) => output.show({ id: 12_345, recorded: 20_001 }))).toBe('id        12345\nrecorded  20,001\n')
})

test('a text keeps its lines and tabs, cannot steer the terminal, and hides nothing', () => {
  expect(show((output) => output.text('-\t\ta\u001b[31m\n+\u202eb\n'))).toBe('-\t\ta [31m\n+\\u{202e}b\n')
  const emojis = '\u{1f469}\u200d\u{1f680} \u2764\ufe0f\u200d\u{1f525}'
  const given = `${emojis} a\u200bb\u{e0041}\u{e0100}\u00ad\n`
  expect(show((output) => output.text(given))).toBe(`${emojis} a\\u{200b}b\\u{e0041}\\u{e0100}\\u{ad}\n`)
})
