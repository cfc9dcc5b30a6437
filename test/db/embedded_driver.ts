import { afterAll } from 'bun:test'
import fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import postgres from 'postgres'

/** Makes a folder that is removed after the tests of the file. */
export function useFolder(): string {
  const folder = fs.mkdtempSync(join(tmpdir(), 'embedded-'))
  afterAll(() => fs.rmSync(folder, { recursive: true }))
  return folder
}

export function openDriver(
  engine: { connect(): Duplex },
  more: postgres.Options<Record<string, never>> = {},
): postgres.Sql {
  const options = { socket: engine.connect, max: 1, ssl: false as const, onnotice: () => {}, ...more }
  return postgres(options)
}

/** Why a query or an opening failed. */
export async function failureOf(work: PromiseLike<unknown>): Promise<string> {
  return Promise.resolve(work).then(
    () => 'nothing failed',
    (error: Error) => error.message,
  )
}
