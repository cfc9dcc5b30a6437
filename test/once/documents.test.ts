import { expect, test } from 'bun:test'
import { loadCommands } from '../../src/cli/run.ts'
import { settings } from '../../src/config.ts'
import { createMetrics } from '../../src/ops/metrics.ts'

const linesOf = async (file: string) => (await Bun.file(file).text()).split('\n')

test('the table of settings in the documentation is the one the program reads', async () => {
  const rows = (await linesOf('docs/settings.md')).filter((line) => /^\| `[A-Z_]+` /.test(line))
  const expected = Object.entries(settings).map(([name, { type, fallback, secret, meaning }]) => {
    const names = secret ? `\`${name}\` or \`${name}_FILE\`` : `\`${name}\``
    return `| ${names} | ${type} | ${fallback === undefined ? '' : `\`${fallback}\``} | ${meaning} |`
  })
  expect(rows).toEqual(expected)
})

test('the table of commands in the documentation is what the program takes and says', async () => {
  const rows = (await linesOf('docs/commands.md')).filter((line) => line.startsWith('| `'))
  const expected = (await loadCommands()).map(({ usage, does }) => {
    const shown = does.replaceAll(/--[a-z-]+/g, '`$&`')
    return `| \`${usage.replaceAll('|', '\\|')}\` | ${shown} |`
  })
  expect(rows).toEqual(expected)
})

test('every command that changes something names the one that shows whether it did', async () => {
  const changing = /\b(create|set|set-plan|suspend|resume|revoke|rotate|link|record|import|restore|migrate)\b/
  const wrong = (await loadCommands()).filter(({ usage, verifyWith }) => {
    const name = usage.split(/ [-A-Z[]/)[0] as string
    return changing.test(name) !== (verifyWith !== undefined)
  })
  expect(wrong.map(({ usage }) => usage)).toEqual([])
})

test('the table of metrics in the documentation is what the service shows', async () => {
  const metrics = createMetrics()
  metrics.watchDatabase(() => ({ pending: 0, connections: 1 }))
  metrics.describeBuild({ version: '', commit: '', bun: '' })
  const shown = [...(await metrics.text()).matchAll(/^# HELP (prompt_signals_\S+) (.+)$/gm)]
  const rows = (await linesOf('docs/observability.md')).filter((line) => line.startsWith('| `prompt_signals_'))
  expect(rows).toEqual(shown.map(([, name, says]) => `| \`${name}\` | ${says} |`))
})
