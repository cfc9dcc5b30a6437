import { expect, test } from 'bun:test'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { operations } from '../../src/operations.ts'
import { createFolder } from '../program.ts'
import { serveInTest, useService, useTenant } from '../use.ts'

const service = useService()
const tenant = useTenant(service)

const program = fileURLToPath(import.meta.resolve('@modelcontextprotocol/conformance/dist/index.js'))

/** Scenarios that must fail; one that passes fails the test. */
const failing = [
  // The server has tools only: no completions, resources or prompts.
  ...['completion-complete', 'prompts-list', 'prompts-get-simple', 'prompts-get-with-args', 'prompts-get-with-image'],
  ...['prompts-get-embedded-resource', 'resources-list', 'resources-read-text', 'resources-read-binary'],
  'resources-templates-read',
  // They call tools that only a server for tests has.
  ...['tools-call-image', 'tools-call-audio', 'tools-call-embedded-resource', 'tools-call-mixed-content'],
  'tools-call-with-progress',
  // It expects that a page of the same host may ask. No page may: every Origin is rejected.
  'dns-rebinding-protection',
]

const failingBefore = [
  // Nor has it logging, subscriptions or requests to the client.
  ...['logging-set-level', 'resources-subscribe', 'resources-unsubscribe', 'tools-call-with-logging'],
  ...['tools-call-sampling', 'tools-call-elicitation', 'elicitation-sep1034-defaults', 'elicitation-sep1330-enums'],
  // It warns that there is no session. The server keeps none.
  'server-sse-multiple-streams',
]

test.each([
  ['2026-07-28', failing],
  ['2025-11-25', [...failing, ...failingBefore]],
])('follows version %s of the protocol, but for the listed scenarios', async (version, expected) => {
  // The scenarios know no key.
  const proxy = serveInTest(({ method, headers, body }) => {
    const withKey = { ...Object.fromEntries(headers), authorization: `Bearer ${tenant.key}` }
    return fetch(`${service.url}/mcp`, { method, headers: withKey, body })
  })
  const file = join(createFolder(), 'failing.yml')
  await Bun.write(file, JSON.stringify({ server: expected }))
  const options = ['--url', `${proxy}/mcp`, '--spec-version', version, '--expected-failures', file]
  const child = Bun.spawn([process.execPath, '--bun', program, 'server', ...options], { stderr: 'inherit' })
  const [shown, status] = await Promise.all([new Response(child.stdout).text(), child.exited])
  expect({ status, summary: shown.slice(shown.indexOf('=== SUMMARY')) }).toEqual({
    status: 0,
    summary: expect.stringMatching(/✓ tools-list: \d passed, 0 failed/),
  })
})

test('the command line of the inspector lists the tools and calls one', async () => {
  const inspector = fileURLToPath(import.meta.resolve('@modelcontextprotocol/inspector-cli/build/cli.js'))
  // It looks for its package.json from the working directory.
  const cwd = dirname(inspector)
  const inspect = async (...asked: string[]) => {
    const options = ['--transport', 'http', '--header', `authorization: Bearer ${tenant.key}`, '--method', ...asked]
    const child = Bun.spawn(['node', inspector, '--cli', `${service.url}/mcp`, ...options], { cwd, stderr: 'pipe' })
    const [shown, errors, status] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
    if (status !== 0) throw new Error(errors)
    return JSON.parse(shown)
  }
  const { tools: listed } = await inspect('tools/list')
  expect(listed.map(({ name }: { name: string }) => name)).toEqual(operations.flatMap(({ tool }) => tool?.name ?? []))
  const given = ['--tool-arg', `prompt_id=${tenant.prompt}`, 'value=negative', 'metadata={"model":"a"}']
  const { structuredContent } = await inspect('tools/call', '--tool-name', 'record_signal', ...given)
  const { body } = await service.get(`/prompts/${tenant.prompt}/signals`, tenant.key)
  expect(body.data).toMatchObject([{ id: structuredContent.data.id, value: 'negative', metadata: { model: 'a' } }])
})
