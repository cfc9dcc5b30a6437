// The packages inside the binary, from the list of what was bundled, not of what is installed.
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

export type Package = { name: string; version: string; licence: string; texts: string[]; purl?: string }

/** Packages that are put in as files, and so are not bundled. */
const asFiles = ['node_modules/@electric-sql/pglite', 'node_modules/swagger-ui-dist']

export async function findPackages(bundledFiles: string[]): Promise<Package[]> {
  const bundled = bundledFiles.flatMap((source) => /.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(source)?.[0] ?? [])
  const folders = [...new Set([...asFiles, ...bundled.map((path) => path.replace(/^.*?(?=node_modules\/)/, ''))])]
  const packages = await Promise.all(folders.map(readPackage))
  packages.push(await readPostgres())
  return packages.sort((a, b) => `${a.name}@${a.version}`.localeCompare(`${b.name}@${b.version}`, 'en'))
}

/** Postgres is inside the engine, under its own licence, and says there which version it is. */
async function readPostgres(): Promise<Package> {
  const engine = await readFile('node_modules/@electric-sql/pglite/dist/pglite.wasm', 'latin1')
  const version = /PostgreSQL (\d+\.\d+) \(PGlite/.exec(engine)?.[1]
  if (!version) throw new Error('The engine does not say which version of Postgres it is')
  const texts = [await readFile(join(import.meta.dirname, 'postgresql_licence.txt'), 'utf8')]
  return { name: 'postgresql', version, licence: 'PostgreSQL', texts, purl: `pkg:generic/postgresql@${version}` }
}

async function readPackage(folder: string): Promise<Package> {
  const { name, version, license } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'))
  if (typeof license !== 'string') throw new Error(`${folder}/package.json names no licence`)
  const files = (await readdir(folder)).filter((file) => /^(licen[cs]e|notice|copying)/i.test(file)).sort()
  const texts = await Promise.all(files.map((file) => readFile(join(folder, file), 'utf8')))
  return { name, version, licence: license, texts }
}

/** CycloneDX 1.6. No serial number and no time, so that the same build has the same text. */
export function describeComponents(version: string, packages: Package[]): string {
  const component = (name: string, its: string, licence: string, url = purl(name, its)) => ({
    type: 'library',
    'bom-ref': url,
    name,
    version: its,
    licenses: [/^\(|\b(AND|OR|WITH)\b/.test(licence) ? { expression: licence } : { license: { id: licence } }],
    purl: url,
  })
  const document = {
    $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: { component: { ...component('prompt-signals', version, 'MIT'), type: 'application' } },
    components: [
      { ...component('bun', Bun.version, 'MIT'), type: 'platform' },
      ...packages.map((one) => component(one.name, one.version, one.licence, one.purl)),
    ],
  }
  return `${JSON.stringify(document, null, 2)}\n`
}

const purl = (name: string, version: string) => `pkg:npm/${name.replace('@', '%40')}@${version}`

export async function describeLicences(packages: Package[]): Promise<string> {
  const ofBun = await readFile('node_modules/bun-types/docs/project/license.mdx', 'utf8')
  const sections = [
    ['prompt-signals (MIT)', await readFile('LICENSE', 'utf8')],
    [`bun ${Bun.version}, the runtime (MIT, with parts under other licences)`, ofBun],
    ...packages.map(({ name, version, licence, texts }) => [`${name} ${version} (${licence})`, ...texts]),
  ]
  return sections.map((section) => section.map((text) => text?.trim()).join('\n\n')).join(`\n\n${'-'.repeat(80)}\n\n`)
}
