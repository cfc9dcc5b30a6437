// Makes dist/release: for each platform the binary and the list of its components; both clients; the image; the licences; the notes;
// what installs it; and SHA256SUMS of all, signed if there is a key. The same commit gives the same bytes anywhere.
import { execFileSync, spawnSync } from 'node:child_process'
import { hash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { copyFile, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { version } from '../package.json'
import { packPython, packTypescript } from './clients.ts'
import { compile, targets } from './compile.ts'
import { writeImage } from './image.ts'
import { describeComponents, describeLicences, findPackages } from './packages.ts'

const folder = 'dist/release'
const key = process.env.MINISIGN_KEY && resolve(process.env.MINISIGN_KEY)
if (key && !existsSync(key)) throw new Error(`MINISIGN_KEY: there is no file ${key}`)
checkCommit()
await rm(folder, { recursive: true, force: true })
await mkdir(folder, { recursive: true })
const write = (name: string, content: string | Uint8Array) => writeFile(join(folder, name), content)

const { notes, date } = readNotes(await readFile('CHANGELOG.md', 'utf8'))
if (date === 'unreleased') console.error(`CHANGELOG.md says that ${version} is not released`)
await write(`prompt-signals-${version}-notes.md`, notes)
for (const { name, content } of [await packTypescript(), await packPython()]) await write(name, content)
for (const file of ['install.sh', 'prompt-signals.service']) await copyFile(join('deploy', file), join(folder, file))
// Those for musl can be built, but have not been tested yet.
const read = (target: string) => readFile(join(folder, `prompt-signals-${version}-linux-${target}`))
for (const target of targets.filter((one) => !one.endsWith('musl'))) {
  const binary = `prompt-signals-${version}${target.replace('bun', '')}`
  const packages = await findPackages(await compile(join(folder, binary), target))
  await write(`${binary}.cdx.json`, describeComponents(version, packages))
  await write(`prompt-signals-${version}-licences.txt`, await describeLicences(packages))
}
await write(
  `prompt-signals-${version}-image.tar`,
  await writeImage({ amd64: await read('x64'), arm64: await read('arm64') }),
)
const sums = (await readdir(folder)).sort().map(async (name) => {
  // In the form that sha256sum --check reads.
  return `${hash('sha256', await readFile(join(folder, name)), 'hex')}  ${name}\n`
})
const text = (await Promise.all(sums)).join('')
await write('SHA256SUMS', text)
console.log(text.trimEnd())
sign()

/** The commit that the binaries name must have what they were built from. */
function checkCommit(): void {
  if (process.env.BUILD_COMMIT) return
  const { status, stdout } = spawnSync('git', ['status', '--porcelain'], { encoding: 'utf8' })
  if (status !== 0) throw new Error('The commit is unknown: release from a clone, or set BUILD_COMMIT')
  if (stdout !== '') throw new Error(`Commit these changes, or set BUILD_COMMIT:\n${stdout.trimEnd()}`)
}

/** The part of the changelog about this version. */
function readNotes(changelog: string): { notes: string; date: string } {
  const [part = ''] = changelog.split(/^## /m).filter((one) => one.startsWith(`${version} (`))
  const [, date = '', notes = ''] = /^\S+ \((.*?)\)\n+([\s\S]*)$/.exec(part) ?? []
  if (notes === '') throw new Error(`CHANGELOG.md has nothing about ${version}`)
  return { notes, date }
}

function sign(): void {
  const run = (program: string, ...args: string[]) =>
    execFileSync(program, args, { cwd: folder, stdio: ['inherit', 'inherit', 'inherit'] })
  if (key) run('minisign', '-S', '-s', key, '-t', `prompt-signals ${version}`, '-m', 'SHA256SUMS')
  else if (Bun.which('cosign')) run('cosign', 'sign-blob', '--yes', '--bundle', 'SHA256SUMS.bundle', 'SHA256SUMS')
  else console.log('SHA256SUMS is not signed: set MINISIGN_KEY, or put cosign on the PATH')
}
