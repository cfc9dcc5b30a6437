// Makes generated/console.bundle: the files of the console under names of their content, compressed, in one JSON object;
// and generated/feedback.bundle, the button for web pages.
import { basename, join } from 'node:path'
import { packFile, writeGenerated } from './bundle.ts'
import { makeGuides } from './guides.ts'

const root = join(import.meta.dirname, '..')

if (import.meta.main) {
  await makeConsole()
  await makeButton()
  await makeGuides()
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
  const packed = await Promise.all(
    result.outputs.map(async (file) => pack(Buffer.from(await file.arrayBuffer()), file.path)),
  )
  const nameOf = (ending: string) => packed.find(([name]) => new RegExp(`^main-\\w+\\.${ending}$`).test(name))?.[0]
  const bundle = { script: nameOf('js'), style: nameOf('css'), files: Object.fromEntries(packed) }
  await writeGenerated('console.bundle', JSON.stringify(bundle))
  return Object.keys(result.metafile?.inputs ?? {})
}

export async function makeButton(): Promise<void> {
  const entrypoints = [join(root, 'clients/button/feedback.ts')]
  const result = await Bun.build({ entrypoints, target: 'browser', format: 'iife', minify: true, throw: false })
  requireSuccess(result)
  await writeGenerated('feedback.bundle', (await result.outputs[0]?.text()) ?? '')
}

function requireSuccess({ logs, success }: Bun.BuildOutput): void {
  for (const message of logs) console.error(message)
  if (!success) process.exit(1)
}

function pack(content: Uint8Array, path: string): [string, ReturnType<typeof packFile>] {
  const type = path.endsWith('.css') ? 'text/css' : 'text/javascript'
  return [basename(path), packFile(`${type}; charset=utf-8`, content)]
}
