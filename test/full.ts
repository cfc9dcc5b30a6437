/** `bun run test:all` takes the full volume; `bun run test`, which people wait for, the smaller one. */
export const inFullRun = <T>(full: T, otherwise: T): T => (process.env.TEST_FULL ? full : otherwise)
