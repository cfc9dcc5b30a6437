// Makes dist/release: for each platform the binary, its checksum and the list of its components; and the licences.
import { hash } from 'node:crypto'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { version } from '../package.json'
import { compile, targets } from './compile.ts'
import { describeComponents, describeLicences, findPackages } from './packages.ts'

const folder = 'dist/release'
await rm(folder, { recursive: true, force: true })
await mkdir(folder, { recursive: true })

// Those for musl can be built, but have not been tested yet.
for (const target of targets.filter((one) => !one.endsWith('musl'))) {
  const binary = join(folder, `prompt-signals-${version}${target.replace('bun', '')}`)
  const packages = await findPackages(await compile(binary, target))
  await writeFile(`${binary}.cdx.json`, describeComponents(version, packages))
  await writeFile(join(folder, `prompt-signals-${version}-licences.txt`), await describeLicences(packages))
  const checksum = hash('sha256', await readFile(binary), 'hex')
  // In the form that sha256sum --check reads.
  await writeFile(`${binary}.sha256`, `${checksum}  ${basename(binary)}\n`)
  console.log(`${checksum}  ${binary}`)
}
