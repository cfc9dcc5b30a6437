import type { Db } from '../db/client.ts'
import { BoundedCache } from '../lib/bounded_cache.ts'
import { createGroupLookup } from '../lib/group_lookup.ts'
import type { Month } from '../lib/months.ts'
import type { Gate, GateObserver } from './gate.ts'
import { type Recorded, readUsages, type SignalToRecord, type Usage } from './store.ts'

/** With the number taken from the gate for it, if one was. */
export type AdmittedSignal = SignalToRecord & { taken?: number | undefined }

/** The month is full; or it may not be, and this number was taken from the gate, if one was. */
export type Verdict = { full?: Usage; taken?: number }

/** Turns away what the gate would refuse, once Postgres has confirmed it. */
export type Admission = {
  /** At once when there is no need to ask the gate. */
  admit(organisationId: number, month: Month): Verdict | Promise<Verdict>
  /** What Postgres said of the signals of one write, which shows whether the gate is right. */
  learn(signals: AdmittedSignal[], recorded: Recorded[]): void
  /** To be called when limits may have changed, of one organisation or of any. */
  forgetRefusals(organisationId?: number): void
}

const unasked: Verdict = {}
const maxOrganisations = 100_000
/** A change of limits is told at once, but what is told may be lost with the connection that it comes by. */
const refusalTrustedForMs = 1_000

export function createAdmission(db: Db, gate: Gate, observe?: GateObserver): Admission {
  /** As Postgres last said: only a hint of when the gate is worth asking, and may be right to refuse. */
  const usages = new BoundedCache<number, Usage & { month: string }>(maxOrganisations)
  /** Months that Postgres has confirmed to be full. */
  const refusals = new BoundedCache<number, Usage & { month: string; until: number }>(maxOrganisations)
  const findUsage = createGroupLookup((periods) => readUsages(db.sql, periods))
  /** Counts what was told; as long as nothing was, changes may go unheard and no refusal is trusted. */
  let timesTold = 0

  function refuse(full: Usage): Verdict {
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
    const toldBefore = timesTold
    const usage = (await findUsage(periodOf(organisationId, month))) as Usage
    usages.set(organisationId, { ...usage, month: month.name })
    if (usage.used >= usage.limit && timesTold > 0 && timesTold === toldBefore) {
      const until = performance.now() + refusalTrustedForMs
      refusals.set(organisationId, { ...usage, month: month.name, until })
    }
    return usage
  }

  async function askGate(organisationId: number, month: Month, knownLimit: number): Promise<Verdict> {
    const taken = await gate.take(organisationId, month)
    if (taken === undefined) return unasked
    if (taken !== null && taken <= knownLimit) {
      observe?.decided('passed')
      return { taken }
    }
    const usage = await confirm(organisationId, month)
    const { used, limit } = usage
    // A missing number is set even when the month is full: it is then that the gate is needed.
    if (taken === null || used < limit) await gate.correct(organisationId, month, used + 1)
    if (used >= limit) return refuse(usage)
    observe?.decided(taken === null ? 'seeded' : 'corrected')
    return { taken: used + 1 }
  }

  return {
    admit(organisationId, month) {
      const known = usages.get(organisationId)
      const usage = known?.month === month.name ? known : undefined
      if (usage && isFarFromFull(usage)) return unasked
      const full = findRefusal(organisationId, month)
      if (full) return refuse(full)
      return askGate(organisationId, month, usage?.limit ?? Number.POSITIVE_INFINITY)
    },
    learn(signals, recorded) {
      for (const { organisationId, month, used, limit, unseen, isBehind } of gatherLessons(signals, recorded)) {
        usages.set(organisationId, { used, limit, month: month.name })
        if (unseen > 0) gate.note(organisationId, month, unseen, used)
        if (isBehind) gate.correct(organisationId, month, used)
      }
    },
    forgetRefusals(organisationId) {
      timesTold += 1
      if (organisationId === undefined) refusals.clear()
      else refusals.delete(organisationId)
    },
  }
}

/** An organisation's month. */
export const periodOf = (organisationId: number, month: Month): string => `${organisationId} ${month.name}`

/** Until then nobody is refused, and asking the gate would only cost time. */
const isFarFromFull = ({ used, limit }: Usage): boolean => used < limit * 0.9

/** What one write showed of a month: how many were recorded without asking the gate, and whether it is too low. */
type Lesson = Usage & { organisationId: number; month: Month; unseen: number; isBehind: boolean }

function gatherLessons(signals: AdmittedSignal[], recorded: Recorded[]): Iterable<Lesson> {
  const lessons = new Map<string, Lesson>()
  signals.forEach(({ organisationId, period, month, taken }, index) => {
    const { outcome, used, limit } = recorded[index] as Recorded
    let lesson = lessons.get(period)
    if (!lesson) {
      lesson = { organisationId, month, used, limit, unseen: 0, isBehind: false }
      lessons.set(period, lesson)
    }
    lesson.used = used
    if (taken === undefined) lesson.unseen += outcome === 'recorded' ? 1 : 0
    else lesson.isBehind ||= taken < used
  })
  return lessons.values()
}
