import { test } from 'bun:test'

/** `bun run test:all` takes the full volume; `bun run test`, which people wait for, the smaller one. */
export const inFullRun = <T>(full: T, otherwise: T): T => (process.env.TEST_FULL ? full : otherwise)

/** A test that takes long and whose promise a test of every run holds too. */
export const testInFullRun = inFullRun(test, (() => {}) as unknown as typeof test)
