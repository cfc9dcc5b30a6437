// Makes generated/console.bundle: the files of the console under names of their content, compressed, in one JSON object;
// and generated/feedback.bundle, the button for web pages.
import { mkdir, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { brotliCompressSync, gzipSync } from 'node:zlib'

const root = join(import.meta.dirname, '..')
const generated = join(root, 'generated')

if (import.meta.main) {
  await makeConsole()
  await makeButton()
}

/** What is in the bundle, as paths. Ends the process when it cannot be built. */
export async function makeConsole(): Promise<string[]> {
  const result = await Bun.build({
    entrypoints: [join(root, 'src/console/main.tsx')],
    root: join(root, 'src/console'),
    tsconfig: join(root, 'src/console/tsconfig.json'),
    target: 'browser',
    format: 'esm',
    // The chart is loaded by the pages that have one.
    splitting: true,
    minify: true,
    metafile: true,
    naming: '[name]-[hash].[ext]',
    define: { 'process.env.NODE_ENV': '"production"' },
    throw: false,
  })
  requireSuccess(result)
  const packed = await Promise.all(result.outputs.map(pack))
  const nameOf = (ending: string) => packed.find(([name]) => new RegExp(`^main-\\w+\\.${ending}$`).test(name))?.[0]
  const bundle = { script: nameOf('js'), style: nameOf('css'), files: Object.fromEntries(packed) }
  await write('console.bundle', JSON.stringify(bundle))
  return Object.keys(result.metafile?.inputs ?? {})
}

export async function makeButton(): Promise<void> {
  const entrypoints = [join(root, 'clients/button/feedback.ts')]
  const result = await Bun.build({ entrypoints, target: 'browser', format: 'iife', minify: true, throw: false })
  requireSuccess(result)
  await write('feedback.bundle', (await result.outputs[0]?.text()) ?? '')
}

function requireSuccess({ logs, success }: Bun.BuildOutput): void {
  for (const message of logs) console.error(message)
  if (!success) process.exit(1)
}

/** Another install may be at work beside this one: each writes its own file, and the last rename wins. */
async function write(name: string, content: string): Promise<void> {
  const path = join(generated, name)
  await mkdir(generated, { recursive: true })
  await writeFile(`${path}.${process.pid}`, content)
  await rename(`${path}.${process.pid}`, path)
}

async function pack(file: Bun.BuildArtifact): Promise<[string, { type: string; gzip: string; br: string }]> {
  const content = Buffer.from(await file.arrayBuffer())
  const type = file.path.endsWith('.css') ? 'text/css' : 'text/javascript'
  return [
    file.path.replace(/^.*\//, ''),
    {
      type: `${type}; charset=utf-8`,
      gzip: gzipSync(content, { level: 9 }).toString('base64'),
      br: brotliCompressSync(content).toString('base64'),
    },
  ]
}
