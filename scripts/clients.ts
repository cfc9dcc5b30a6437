// The packages of both clients, as files to install: the same bytes for the same sources.
import { execFileSync } from 'node:child_process'
import { hash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { version } from '../package.json'
import { type TarFile, writeTar } from './tar.ts'
import { writeZip } from './zip.ts'

const clients = join(import.meta.dirname, '../clients')

/** What npm installs. */
export async function packTypescript(): Promise<{ name: string; content: Buffer }> {
  for (const script of ['api_types', 'client']) {
    execFileSync(process.execPath, [join(import.meta.dirname, `${script}.ts`)], {
      stdio: ['ignore', 'ignore', 'inherit'],
    })
  }
  const folder = join(clients, 'typescript')
  const built = (await readdir(join(folder, 'dist'))).map((name) => `dist/${name}`)
  const files: Record<string, TarFile> = {}
  for (const name of ['package.json', 'README.md', ...built]) {
    files[`package/${name}`] = { content: await readFile(join(folder, name)) }
  }
  files['package/LICENSE'] = { content: await readFile(join(clients, '../LICENSE')) }
  return { name: `prompt-signals-client-${version}.tgz`, content: gzipSync(writeTar(files), { level: 9 }) }
}

/** What pip installs. */
export async function packPython(): Promise<{ name: string; content: Buffer }> {
  const project = Bun.TOML.parse(await readFile(join(clients, 'python/pyproject.toml'), 'utf8')) as {
    project: { name: string; description: string; 'requires-python': string }
  }
  const { name, description, 'requires-python': python } = project.project
  const info = `${name.replaceAll('-', '_')}-${version}.dist-info`
  const files: Record<string, string> = {
    'prompt_signals.py': await readFile(join(clients, 'python/prompt_signals.py'), 'utf8'),
    [`${info}/licenses/LICENSE`]: await readFile(join(clients, '../LICENSE'), 'utf8'),
    [`${info}/METADATA`]: `Metadata-Version: 2.4\nName: ${name}\nVersion: ${version}\nSummary: ${description}\nLicense-Expression: MIT\nLicense-File: LICENSE\nRequires-Python: ${python}\n`,
    [`${info}/WHEEL`]: 'Wheel-Version: 1.0\nGenerator: prompt-signals\nRoot-Is-Purelib: true\nTag: py3-none-any\n',
  }
  const record = Object.entries(files).map(([path, text]) => {
    const digest = hash('sha256', text, 'base64url')
    return `${path},sha256=${digest},${Buffer.byteLength(text)}\n`
  })
  files[`${info}/RECORD`] = `${record.join('')}${info}/RECORD,,\n`
  return { name: `${info.replace('.dist-info', '')}-py3-none-any.whl`, content: writeZip(files) }
}
