// Writes tar archives that are the same for the same files: no times, in the order of the names.

export type TarFile = { content: Uint8Array; mode?: number; owner?: number }

/** Names that end with a slash are folders. */
export function writeTar(files: Record<string, TarFile>): Buffer {
  const parts = Object.keys(files)
    .sort()
    .flatMap((name) => {
      const { content, mode, owner = 0 } = files[name] as TarFile
      return [
        header(name, content.length, mode ?? (name.endsWith('/') ? 0o755 : 0o644), owner),
        content,
        padding(content.length),
      ]
    })
  return Buffer.concat([...parts, Buffer.alloc(1024)])
}

const padding = (length: number) => Buffer.alloc((512 - (length % 512)) % 512)

/** A header of ustar. */
function header(name: string, size: number, mode: number, owner: number): Buffer {
  const bytes = Buffer.alloc(512)
  if (Buffer.byteLength(name) > 100) throw new Error(`${name} is too long a name for a tar archive`)
  const octal = (value: number, at: number, length: number) =>
    bytes.write(`${value.toString(8).padStart(length - 1, '0')}\0`, at, 'latin1')
  bytes.write(name, 0)
  octal(mode, 100, 8)
  octal(owner, 108, 8)
  octal(owner, 116, 8)
  octal(size, 124, 12)
  octal(0, 136, 12)
  bytes.write(' '.repeat(8), 148)
  bytes.write(name.endsWith('/') ? '5' : '0', 156)
  bytes.write('ustar\x0000', 257, 'latin1')
  octal(
    bytes.reduce((sum, byte) => sum + byte, 0),
    148,
    7,
  )
  return bytes
}
