import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'

/**
 * Where the next page of a list begins: after the row of this id; and of this time, if the list is in order of time, or of
 * this value, if it is in order of that.
 */
export type CursorPosition = { id: number; at: Date | null; value?: string }

const [nonceBytes, tagBytes, positionBytes] = [12, 16, 16]
const noTime = -(2n ** 63n)

/**
 * Makes a cursor: encrypted, so that it reveals nothing of ids and times, and of one length but for the value; and
 * authenticated together with the name of its list, so that it opens nothing else.
 */
export function encryptCursor(key: Buffer, list: string, { id, at, value = '' }: CursorPosition): string {
  const position = Buffer.alloc(positionBytes)
  position.writeBigInt64BE(BigInt(id), 0)
  position.writeBigInt64BE(at === null ? noTime : BigInt(at.getTime()), 8)
  const nonce = randomBytes(nonceBytes)
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(list))
  const content = Buffer.concat([cipher.update(position), cipher.update(value, 'utf8'), cipher.final()])
  return Buffer.concat([nonce, content, cipher.getAuthTag()]).toString('base64url')
}

/** The position, or undefined for what was not encrypted with this key for this list. */
export function decryptCursor(key: Buffer, list: string, cursor: string): CursorPosition | undefined {
  const encrypted = Buffer.from(cursor, 'base64url')
  if (encrypted.length < nonceBytes + positionBytes + tagBytes || encrypted.toString('base64url') !== cursor)
    return undefined
  const decipher = createDecipheriv('aes-256-gcm', key, encrypted.subarray(0, nonceBytes))
  decipher.setAAD(Buffer.from(list)).setAuthTag(encrypted.subarray(-tagBytes))
  const position = decipher.update(encrypted.subarray(nonceBytes, -tagBytes))
  try {
    decipher.final()
  } catch {
    return undefined
  }
  const time = position.readBigInt64BE(8)
  const value = position.toString('utf8', positionBytes)
  const at = time === noTime ? null : new Date(Number(time))
  return { id: Number(position.readBigInt64BE(0)), at, ...(value === '' ? {} : { value }) }
}
