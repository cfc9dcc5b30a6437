// Writes zip archives that are the same for the same files: stored, not compressed, and from 1980.
import { crc32 } from 'node:zlib'

export function writeZip(files: Record<string, string>): Buffer {
  const parts: Buffer[] = []
  const directory: Buffer[] = []
  let at = 0
  for (const [name, text] of Object.entries(files)) {
    const [path, content] = [Buffer.from(name), Buffer.from(text)]
    // From the version that reads it to the length of the path; the time is the first that there is.
    const common = Buffer.alloc(26)
    common.writeUInt16LE(20, 0)
    common.writeUInt16LE((1 << 5) | 1, 8)
    common.writeUInt32LE(crc32(content), 10)
    common.writeUInt32LE(content.length, 14)
    common.writeUInt32LE(content.length, 18)
    common.writeUInt16LE(path.length, 22)
    const local = Buffer.concat([Buffer.from('PK\x03\x04'), common, path, content])
    const more = Buffer.alloc(14)
    more.writeUInt32LE((0o100644 << 16) >>> 0, 6)
    more.writeUInt32LE(at, 10)
    // Made on a system with file modes.
    directory.push(Buffer.concat([Buffer.from('PK\x01\x02\x14\x03'), common, more, path]))
    parts.push(local)
    at += local.length
  }
  const end = Buffer.alloc(18)
  end.writeUInt16LE(directory.length, 4)
  end.writeUInt16LE(directory.length, 6)
  end.writeUInt32LE(Buffer.concat(directory).length, 8)
  end.writeUInt32LE(at, 12)
  return Buffer.concat([...parts, ...directory, Buffer.from('PK\x05\x06'), end])
}
