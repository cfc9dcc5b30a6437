/** The only reader of the time of day. Tests set their own. */
export type Clock = { now(): Date }

export const systemClock: Clock = { now: () => new Date() }
