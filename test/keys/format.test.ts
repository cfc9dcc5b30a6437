import { expect, test } from 'bun:test'
import { crc32 } from 'node:zlib'
import { generateKey, isWellFormedKey } from '../../src/keys/verify.ts'

test('a key is psk_, thirty random characters and six of CRC-32 over them', () => {
  const key = generateKey()
  expect(key).toMatch(/^psk_[0-9A-Za-z]{36}$/)
  let sum = 0
  for (const letter of key.slice(-6)) {
    sum = sum * 62 + '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'.indexOf(letter)
  }
  expect(sum).toBe(crc32(key.slice(0, -6)))
  expect(isWellFormedKey(key)).toBe(true)
})

test('a key with any one character changed is rejected without a look-up', () => {
  const key = generateKey()
  for (let position = 0; position < key.length; position += 1) {
    const changed = key.slice(0, position) + (key[position] === 'x' ? 'y' : 'x') + key.slice(position + 1)
    expect(isWellFormedKey(changed)).toBe(false)
  }
})
