// Decides which due deliveries get the free places of a replica's pool. Pure.

/** A delivery that is due, or in flight. */
export type Place = { organisationId: number; isFailing: boolean }

const maxInFlight = 100
/** Endpoints that fail share half of the pool. The others find room however many hang. */
const maxFailing = 50

/**
 * An organisation may hold as many places as are free, so a few that hang leave room for the next one. Organisations that
 * hold fewer places come first.
 */
export function choosePlaces<T extends Place>(due: T[], inFlight: Place[]): T[] {
  const held = countByOrganisation(inFlight)
  const numbered = due.map((one) => {
    const number = (held.get(one.organisationId) ?? 0) + 1
    held.set(one.organisationId, number)
    return { one, number }
  })
  const { room, roomForFailing } = findRoom(inFlight)
  const chosen: T[] = []
  let failing = 0
  for (const { one, number } of numbered.toSorted((a, b) => a.number - b.number)) {
    if (number > room - chosen.length) break
    if (one.isFailing && failing === roomForFailing) continue
    if (one.isFailing) failing += 1
    chosen.push(one)
  }
  return chosen
}

/** Who gets no place now; null when nobody does. */
export function findExcluded(inFlight: Place[]): { organisations: number[]; failing: boolean } | null {
  const { room, roomForFailing } = findRoom(inFlight)
  if (room <= 0) return null
  const full = [...countByOrganisation(inFlight)].filter(([, number]) => number >= room)
  return { organisations: full.map(([id]) => id), failing: roomForFailing <= 0 }
}

function findRoom(inFlight: Place[]) {
  const failing = inFlight.filter(({ isFailing }) => isFailing).length
  return { room: maxInFlight - inFlight.length, roomForFailing: maxFailing - failing }
}

function countByOrganisation(places: Place[]): Map<number, number> {
  const groups = Map.groupBy(places, ({ organisationId }) => organisationId)
  return new Map([...groups].map(([id, { length }]) => [id, length]))
}
