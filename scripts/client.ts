// Makes clients/typescript/dist, what the npm package contains: each source file as JavaScript, with its types.
import { copyFile, mkdir, rm } from 'node:fs/promises'
import { basename, join } from 'node:path'
import ts from 'typescript'

const folder = join(import.meta.dirname, '../clients/typescript')
const dist = join(folder, 'dist')

const { config } = ts.readConfigFile(join(folder, '../tsconfig.json'), ts.sys.readFile)
const { options } = ts.parseJsonConfigFileContent(config, ts.sys, join(folder, '..'))
const program = ts.createProgram([join(folder, 'src/index.ts')], {
  ...options,
  target: ts.ScriptTarget.ES2022,
  noEmit: false,
  declaration: true,
  rewriteRelativeImportExtensions: true,
  rootDir: join(folder, 'src'),
  outDir: dist,
})
const problems = ts.getPreEmitDiagnostics(program)
if (problems.length > 0) {
  console.error(ts.formatDiagnostics(problems, ts.createCompilerHost(options)))
  process.exit(1)
}
await rm(dist, { recursive: true, force: true })
await mkdir(dist, { recursive: true })
// The compiler leaves the extensions of imports in declarations as they are.
program.emit(undefined, (path, text) =>
  ts.sys.writeFile(path, text.replace(/(["']\.\/\w+)(\.d)?\.ts(?=["'])/g, '$1.js')),
)
await copyFile(join(folder, 'src/openapi.d.ts'), join(dist, 'openapi.d.ts'))
console.log(`${basename(dist)}: ${(await Array.fromAsync(new Bun.Glob('*').scan(dist))).sort().join(', ')}`)
