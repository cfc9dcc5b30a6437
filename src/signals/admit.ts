import type { Db } from '../db/client.ts'
import { BoundedCache } from '../lib/bounded_cache.ts'
import { createGroupLookup } from '../lib/group_lookup.ts'
import type { Month } from '../lib/months.ts'
import type { Gate, GateObserver } from './gate.ts'
import { rateLimited } from './limit.ts'
import { type Recorded, readUsages, type Usage } from './store.ts'

/** Turns away what the gate would refuse, once Postgres has confirmed it. */
export type Admission = {
  /** The number taken from the gate, if one was; rejects with `rate_limited` when the month is full. */
  admit(organisationId: number, month: Month): Promise<number | undefined>
  /** What Postgres said after a write, which shows whether the gate is right. */
  learn(organisationId: number, month: Month, taken: number | undefined, recorded: Recorded): void
  /** To be called when limits may have changed, of one organisation or of any. */
  forgetRefusals(organisationId?: number): void
}

const maxOrganisations = 100_000
/** A change of limits is told at once, but what is told may be lost with the connection that it comes by. */
const refusalTrustedForMs = 1_000

export function createAdmission(db: Db, gate: Gate, observe?: GateObserver): Admission {
  /** As Postgres last said: only a hint of when the gate is worth asking, and may be right to refuse. */
  const usages = new BoundedCache<number, Usage & { month: string }>(maxOrganisations)
  /** Months that Postgres has confirmed to be full. */
  const refusals = new BoundedCache<number, Usage & { month: string; until: number }>(maxOrganisations)
  const findUsage = createGroupLookup((pairs) => readUsages(db.sql, pairs))
  /** Counts what was told; as long as nothing was, changes may go unheard and no refusal is trusted. */
  let timesTold = 0

  async function confirm(organisationId: number, month: Month): Promise<Usage> {
    const known = refusals.get(organisationId)
    if (known?.month === month.name && performance.now() < known.until) return known
    const toldBefore = timesTold
    const usage = (await findUsage(`${organisationId} ${month.name}`)) as Usage
    usages.set(organisationId, { ...usage, month: month.name })
    if (usage.used >= usage.limit && timesTold > 0 && timesTold === toldBefore) {
      const until = performance.now() + refusalTrustedForMs
      refusals.set(organisationId, { ...usage, month: month.name, until })
    }
    return usage
  }

  return {
    async admit(organisationId, month) {
      const known = usages.get(organisationId)
      if (known?.month === month.name && isFarFromFull(known)) return undefined
      const taken = await gate.take(organisationId, month)
      if (taken === undefined) return undefined
      if (taken !== null && taken <= (known?.limit ?? Number.POSITIVE_INFINITY)) {
        observe?.decided('passed')
        return taken
      }
      const { used, limit } = await confirm(organisationId, month)
      // A missing number is set even when the month is full: it is then that the gate is needed.
      if (taken === null || used < limit) await gate.correct(organisationId, month, used + 1)
      observe?.decided(used >= limit ? 'refused' : taken === null ? 'seeded' : 'corrected')
      if (used >= limit) throw rateLimited(used, limit, month)
      return used + 1
    },
    learn(organisationId, month, taken, { outcome, used, limit }) {
      usages.set(organisationId, { used, limit, month: month.name })
      if (taken === undefined) {
        if (outcome === 'recorded') gate.note(organisationId, month, used)
      } else if (taken < used) gate.correct(organisationId, month, used)
    },
    forgetRefusals(organisationId) {
      timesTold += 1
      if (organisationId === undefined) refusals.clear()
      else refusals.delete(organisationId)
    },
  }
}

/** Until then nobody is refused, and asking the gate would only cost time. */
const isFarFromFull = ({ used, limit }: Usage): boolean => used < limit * 0.9
