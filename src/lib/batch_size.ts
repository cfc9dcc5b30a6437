/** A smaller batch is never split: to write it in two would cost the database more than it saves here. */
const minBatch = 128

/**
 * How many items to write next: half of those that seem to be there, which are the ones in the queue and the ones of
 * the last batch, whose callers are about to come back. So one half is written while the other half is answered and
 * sent again. Otherwise all callers would soon wait for one write, and then the write for all of them.
 */
export const nextBatchSize = (queued: number, lastBatch: number, maxBatch: number): number =>
  Math.min(Math.max(minBatch, Math.ceil((queued + lastBatch) / 2)), maxBatch)
