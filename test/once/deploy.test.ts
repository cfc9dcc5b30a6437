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
