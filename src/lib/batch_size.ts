/** A smaller batch is never split, because two writes would cost the database more than the overlap gains. */
const minBatch = 128

/**
 * How many items to write next: half of the active callers, who are those in the queue and those of the last batch, who
 * are about to send again. One half is thus written while the other half is answered and sends again. Otherwise all
 * callers would soon wait for one write, and then the write for all of them.
 */
export const nextBatchSize = (queued: number, lastBatch: number, maxBatch: number): number =>
  Math.min(Math.max(minBatch, Math.ceil((queued + lastBatch) / 2)), maxBatch)
