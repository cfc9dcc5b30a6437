// The files of a page, compressed, as the service reads them from one file.
import { mkdir, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { brotliCompressSync, gzipSync } from 'node:zlib'

const generated = join(import.meta.dirname, '../generated')

export const packFile = (type: string, content: Uint8Array) => ({
  type,
  gzip: gzipSync(content, { level: 9 }).toString('base64'),
  br: brotliCompressSync(content).toString('base64'),
})

/** Another install may be at work beside this one: each writes its own file, and the last rename wins. */
export async function writeGenerated(name: string, content: string): Promise<void> {
  const path = join(generated, name)
  await mkdir(generated, { recursive: true })
  await writeFile(`${path}.${process.pid}`, content)
  await rename(`${path}.${process.pid}`, path)
}
