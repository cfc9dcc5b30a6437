import { maxTextBytes } from '../history/schema.ts'
import { isStorableText } from '../history/texts.ts'
import type { Git } from './program.ts'

/** A file at a commit. The path is text. */
type FileVersion = { commitSha: string; path: string }

/** The text of a file; or why it has none, which is null for a file that is not there. */
type FileText = { text: string } | { problem: string | null }

/** Reads the texts of files in the order given, one after the other: together they may be larger than the memory. */
export async function* readTexts(git: Git, files: (FileVersion | null)[]): AsyncGenerator<FileText> {
  const names = files.flatMap((file) => (isReadable(file) ? [`${file.commitSha}:${file.path}\n`] : []))
  const output = createReader(git.stream(['cat-file', '--batch'], names.join('')))
  for (const file of files) {
    if (!isReadable(file)) {
      yield { problem: null }
      continue
    }
    const header = (await output.read(await output.findLineEnd())).toString('latin1')
    await output.skip(1)
    const [, type, size] = /^[0-9a-f]{40,64} (\w+) (\d+)$/.exec(header) ?? []
    if (size === undefined) {
      yield { problem: null }
      continue
    }
    const isSmall = Number(size) <= maxTextBytes
    const bytes = isSmall ? await output.read(Number(size)) : await output.skip(Number(size))
    await output.skip(1)
    if (type !== 'blob') yield { problem: null }
    else yield bytes ? decodeText(bytes) : { problem: `is larger than ${maxTextBytes / 1024} KiB` }
  }
}

/** git reads one name per line. */
const isReadable = (file: FileVersion | null): file is FileVersion => file !== null && !file.path.includes('\n')

function decodeText(bytes: Uint8Array): FileText {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
    return isStorableText(text) ? { text } : { problem: 'is binary' }
  } catch {
    return { problem: 'is not UTF-8' }
  }
}

/** Reads parts of known lengths from a stream. */
function createReader(chunks: AsyncIterable<Buffer>) {
  const iterator = chunks[Symbol.asyncIterator]()
  let rest: Buffer = Buffer.alloc(0)

  async function readMore(): Promise<void> {
    const { done, value } = await iterator.next()
    if (done) throw new Error('git ended before it had sent every file.')
    rest = Buffer.concat([rest, value])
  }

  return {
    async findLineEnd(): Promise<number> {
      while (!rest.includes('\n')) await readMore()
      return rest.indexOf('\n')
    },
    async read(length: number): Promise<Buffer> {
      while (rest.length < length) await readMore()
      const part = rest.subarray(0, length)
      rest = rest.subarray(length)
      return part
    },
    async skip(length: number): Promise<undefined> {
      let left = length
      while (rest.length < left) {
        left -= rest.length
        rest = Buffer.alloc(0)
        await readMore()
      }
      rest = rest.subarray(left)
    },
  }
}
