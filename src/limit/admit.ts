import type { Db } from '../db/client.ts'
import { BoundedCache } from '../lib/bounded_cache.ts'
import { createDataLoader } from '../lib/data_loader.ts'
import type { Month } from '../lib/months.ts'
import type { Gate, GateObserver } from './gate.ts'
import type { Usage, UsageMonth } from './schema.ts'
import { readUsages } from './store.ts'

export type { Usage, UsageMonth }

/** The month of a signal, with the count that the gate returned for it, unless the gate was bypassed. */
export type Admitted = UsageMonth & { taken?: number | undefined }

/** What Postgres made of a signal, with the count after it. */
type Written = Usage & { outcome: 'recorded' | 'refused' | 'replayed' | 'conflict' }

/** Either the month is full, or the signal may be recorded; `taken` is the count that the gate returned for it. */
export type AdmissionResult = { full?: Usage; taken?: number }

/** Refuses signals before they reach Postgres, once Postgres has confirmed that the month is full. */
export type Admission = {
  /** Returns without a promise when neither the gate nor Postgres is asked. */
  admit(organisationId: number, month: Month): AdmissionResult | Promise<AdmissionResult>
  /** Caches the usage that Postgres returned for one batch, and corrects the gate where it is behind. */
  applyBatchResult(signals: Admitted[], recorded: Written[]): void
  /** Forgets cached refusals when limits may have changed, of one organisation or of any. */
  forgetRefusals(organisationId?: number): void
}

const bypassed: AdmissionResult = {}
const maxOrganisations = 100_000
/** A change of limits is notified immediately, but a notification may be lost with its connection. */
const refusalTrustedForMs = 1_000

export function createAdmission(db: Db, gate: Gate, observe?: GateObserver): Admission {
  /** The last known usage: only a hint whether the gate is worth a call and may be right to refuse. */
  const usages = new BoundedCache<number, Usage & { month: string }>(maxOrganisations)
  /** Months that Postgres has confirmed to be full. */
  const refusals = new BoundedCache<number, Usage & { month: string; until: number }>(maxOrganisations)
  const findUsage = createDataLoader(async (keys: UsageMonth[]) => {
    const found = await readUsages(db.sql, keys)
    return new Map(keys.map((key, index) => [usageRowId(key), found[index] as Usage]))
  }, usageRowId)
  /** Before the first invalidation nobody listens for changes of limits, and no refusal is cached. */
  let invalidations = 0

  function refuse(full: Usage): AdmissionResult {
    observe?.decided('refused')
    return { full }
  }

  function findRefusal(organisationId: number, month: Month): Usage | undefined {
    const known = refusals.get(organisationId)
    return known?.month === month.name && performance.now() < known.until ? known : undefined
  }

  async function confirm(organisationId: number, month: Month): Promise<Usage> {
    const known = findRefusal(organisationId, month)
    if (known) return known
    const invalidationsBefore = invalidations
    const usage = (await findUsage({ organisationId, month })) as Usage
    usages.set(organisationId, { ...usage, month: month.name })
    if (usage.used >= usage.limit && invalidations > 0 && invalidations === invalidationsBefore) {
      const until = performance.now() + refusalTrustedForMs
      refusals.set(organisationId, { ...usage, month: month.name, until })
    }
    return usage
  }

  async function callGate(organisationId: number, month: Month, knownLimit: number): Promise<AdmissionResult> {
    const taken = await gate.take(organisationId, month)
    if (taken === undefined) return bypassed
    if (taken !== null && taken <= knownLimit) {
      observe?.decided('passed')
      return { taken }
    }
    const usage = await confirm(organisationId, month)
    const { used, limit } = usage
    if (isFarFromFull(usage)) {
      observe?.decided('passed')
      return bypassed
    }
    // A missing count is set even when the month is full: it is then that the gate is needed.
    if (taken === null || used < limit) await gate.correct(organisationId, month, used + 1)
    if (used >= limit) return refuse(usage)
    observe?.decided(taken === null ? 'seeded' : 'corrected')
    return { taken: used + 1 }
  }

  return {
    admit(organisationId, month) {
      const known = usages.get(organisationId)
      const usage = known?.month === month.name ? known : undefined
      if (usage && isFarFromFull(usage)) return bypassed
      const full = findRefusal(organisationId, month)
      if (full) return refuse(full)
      return callGate(organisationId, month, usage?.limit ?? Number.POSITIVE_INFINITY)
    },
    applyBatchResult(signals, recorded) {
      for (const { organisationId, month, used, limit, isGateBehind } of gatherUpdates(signals, recorded)) {
        usages.set(organisationId, { used, limit, month: month.name })
        if (isGateBehind && !isFarFromFull({ used, limit })) gate.correct(organisationId, month, used)
      }
    },
    forgetRefusals(organisationId) {
      invalidations += 1
      if (organisationId === undefined) refusals.clear()
      else refusals.delete(organisationId)
    },
  }
}

/** The identity of a usage row. */
const usageRowId = ({ organisationId, month }: UsageMonth): string => `${organisationId} ${month.name}`

/** Until then nobody is refused, so the gate is not called, which would cost time with many organisations. */
const isFarFromFull = ({ used, limit }: Usage): boolean => used < limit * 0.9

/** What one batch showed of a month. The gate is behind when it counted less than what is recorded. */
type UsageUpdate = Usage & { organisationId: number; month: Month; isGateBehind: boolean }

function gatherUpdates(signals: Admitted[], recorded: Written[]): Iterable<UsageUpdate> {
  const updates = new Map<string, UsageUpdate>()
  signals.forEach((signal, index) => {
    const { organisationId, month, taken } = signal
    const { outcome, used, limit } = recorded[index] as Written
    const id = usageRowId(signal)
    let update = updates.get(id)
    if (!update) {
      update = { organisationId, month, used, limit, isGateBehind: false }
      updates.set(id, update)
    }
    update.used = used
    update.isGateBehind ||= taken === undefined ? outcome === 'recorded' : taken < used
  })
  return updates.values()
}
