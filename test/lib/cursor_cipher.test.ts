import { expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { type CursorPosition, decryptCursor, encryptCursor } from '../../src/lib/cursor_cipher.ts'

const key = randomBytes(32)

test.each([
  { id: 1, at: null },
  { id: Number.MAX_SAFE_INTEGER, at: null },
  { id: 7, at: new Date(0) },
  { id: 7, at: new Date('0001-01-01T00:00:00.001Z') },
  { id: 7, at: new Date('9999-12-31T23:59:59.999Z') },
] satisfies CursorPosition[])('decrypts what it has encrypted: %p', (position) => {
  const cursor = encryptCursor(key, 'a list', position)
  expect(decryptCursor(key, 'a list', cursor)).toEqual(position)
  expect(cursor).toMatch(/^[0-9A-Za-z_-]{59}$/)
})

test('decrypts the value that a list is sorted by', () => {
  const position = { id: 42, at: null, value: 'Begrüßung 👋' }
  expect(decryptCursor(key, 'a list', encryptCursor(key, 'a list', position))).toEqual(position)
})

test('decrypts nothing that was changed, shortened, of another list or encrypted with another key', () => {
  const cursor = encryptCursor(key, 'a list', { id: 7, at: new Date(0) })
  const bytes = Buffer.from(cursor, 'base64url')
  const changed = Array.from(bytes, (byte, index) => bytes.with(index, byte ^ 1).toBase64({ alphabet: 'base64url' }))
  const others = [
    ...changed.map((text) => text.replaceAll('=', '')),
    cursor.slice(1),
    `${cursor}A`,
    `${cursor}=`,
    '',
    '☃',
  ]
  expect(others.filter((other) => decryptCursor(key, 'a list', other) !== undefined)).toEqual([])
  expect(decryptCursor(key, 'another list', cursor)).toBeUndefined()
  expect(decryptCursor(randomBytes(32), 'a list', cursor)).toBeUndefined()
})
