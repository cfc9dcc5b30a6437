import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'

/** Where the next page of a list begins: after the row of this id; and of this time, if the list is in order of time. */
export type CursorPosition = { id: number; at: Date | null }

const [nonceBytes, tagBytes, positionBytes] = [12, 16, 16]
const noTime = -(2n ** 63n)

/**
 * Makes a cursor: encrypted, so that it reveals nothing of ids and times, and of one length; and authenticated together with
 * the name of its list, so that it opens nothing else.
 */
export function encryptCursor(key: Buffer, list: string, { id, at }: CursorPosition): string {
  const position = Buffer.alloc(positionBytes)
  position.writeBigInt64BE(BigInt(id), 0)
  position.writeBigInt64BE(at === null ? noTime : BigInt(at.getTime()), 8)
  const nonce = randomBytes(nonceBytes)
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(list))
  return Buffer.concat([nonce, cipher.update(position), cipher.final(), cipher.getAuthTag()]).toString('base64url')
}

/** The position, or undefined for what was not encrypted with this key for this list. */
export function decryptCursor(key: Buffer, list: string, cursor: string): CursorPosition | undefined {
  const encrypted = Buffer.from(cursor, 'base64url')
  if (encrypted.length !== nonceBytes + positionBytes + tagBytes || encrypted.toString('base64url') !== cursor)
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
  return { id: Number(position.readBigInt64BE(0)), at: time === noTime ? null : new Date(Number(time)) }
}
