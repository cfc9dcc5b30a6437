import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'

test('the user that docs/operating.md runs commands as is the one that the unit creates its folder for', () => {
  const unit = readFileSync('deploy/prompt-signals.service', 'utf8')
  const [, user = ''] = /^User=(.+)$/m.exec(unit) ?? []
  const [, folder = ''] = /^StateDirectory=(.+)$/m.exec(unit) ?? []
  expect(unit).toContain(`useradd --system --shell /usr/sbin/nologin ${user}\n`)
  // It puts the folder where only the unit reaches it.
  expect(unit).not.toMatch(/^DynamicUser=/m)
  const commands = readFileSync('docs/operating.md', 'utf8').match(/^.*DATA_DIR=\/var\/lib\/prompt-signals .*$/gm) ?? []
  expect(commands).toHaveLength(2)
  for (const command of commands) {
    expect(command).toMatch(new RegExp(`^sudo (-E )?-u ${user} DATA_DIR=/var/lib/${folder} prompt-signals `))
  }
})

test('compose.yaml passes every setting on that it does not set, and that needs no file or other database', () => {
  const [, table = ''] = readFileSync('docs/settings.md', 'utf8').split('<!-- table: settings -->')
  const names = [...table.matchAll(/^\| `(\w+)`/gm)].map(([, name]) => name as string)
  const others = ['HOST', 'PORT', 'DATA_DIR', 'REUSE_PORT', 'PROMPT_SIGNALS_KEY']
  const wanted = names.filter((name) => !others.includes(name) && !name.endsWith('_FILE'))
  type Compose = { services: Record<'prompt-signals', { environment: Record<string, string | null> }> }
  const compose = Bun.YAML.parse(readFileSync('compose.yaml', 'utf8')) as Compose
  expect(Object.keys(compose.services['prompt-signals'].environment).sort()).toEqual(wanted.sort())
})
