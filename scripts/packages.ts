// The packages inside the binary, from the list of what was bundled, not of what is installed.
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

export type Package = { name: string; version: string; licence: string; texts: string[] }

/** Packages that are put in as files, and so are not bundled. */
const asFiles = ['node_modules/@electric-sql/pglite', 'node_modules/swagger-ui-dist']

export async function findPackages(bundledFiles: string[]): Promise<Package[]> {
  const bundled = bundledFiles.flatMap((source) => /.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(source)?.[0] ?? [])
  const folders = [...new Set([...asFiles, ...bundled.map((path) => path.replace(/^.*?(?=node_modules\/)/, ''))])]
  const packages = await Promise.all(folders.map(readPackage))
  return packages.sort((a, b) => `${a.name}@${a.version}`.localeCompare(`${b.name}@${b.version}`, 'en'))
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
  const component = (name: string, its: string, licence: string) => ({
    type: 'library',
    'bom-ref': purl(name, its),
    name,
    version: its,
    licenses: [/^\(|\b(AND|OR|WITH)\b/.test(licence) ? { expression: licence } : { license: { id: licence } }],
    purl: purl(name, its),
  })
  const document = {
    $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: { component: { ...component('prompt-signals', version, 'MIT'), type: 'application' } },
    components: [
      { ...component('bun', Bun.version, 'MIT'), type: 'platform' },
      ...packages.map((one) => component(one.name, one.version, one.licence)),
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
