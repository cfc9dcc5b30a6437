import type { Db } from '../db/client.ts'
import { monthOf } from '../lib/months.ts'
import type { Prompt } from '../prompts/find.ts'
import { writeSignals } from './store.ts'

/** A signal of an earlier time; its metadata is JSON. */
export type PastSignal = { prompt: Prompt; value: 'positive' | 'negative'; metadata: string; at: Date }

/** The embedded engine does nothing else during a write, so each write is short. */
const signalsPerWrite = 500

/** Records signals of the past. Each counts towards the month of its time and the limit of that month. */
export async function recordPastSignals(db: Db, signals: PastSignal[]): Promise<void> {
  for (let start = 0; start < signals.length; start += signalsPerWrite) {
    const results = await writeSignals(
      db.sql,
      signals.slice(start, start + signalsPerWrite).map(({ prompt, value, metadata, at }) => ({
        organisationId: prompt.organisationId,
        promptId: prompt.id,
        value,
        metadata,
        createdAt: at,
        month: monthOf(at),
        idempotencyKey: null,
        browserKeyId: null,
      })),
    )
    if (results.some(({ outcome }) => outcome !== 'recorded'))
      throw new Error('the month has no room for these signals')
  }
}
