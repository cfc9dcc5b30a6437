import { hash } from 'node:crypto'
import { randomBase62, toBase62 } from '../lib/base62.ts'

const shape = /^psk_[0-9A-Za-z]{36}$/

/** Loads the large module with the first key, to keep the start short. */
const checksum = (text: string) => toBase62(process.getBuiltinModule('node:zlib').crc32(text), 6)

export function generateKey(): string {
  const body = `psk_${randomBase62(30)}`
  return body + checksum(body)
}

/** Checks shape and checksum, so that a typo or garbage is rejected without a look-up. */
export const isWellFormedKey = (text: string): boolean =>
  shape.test(text) && checksum(text.slice(0, -6)) === text.slice(-6)

/** The characters shown of a key: enough to recognise it by, far too little to guess it from. */
export const prefixOfKey = (key: string): string => key.slice(0, 12)

export const hashKey = (key: string): Buffer => hash('sha256', key, 'buffer')
