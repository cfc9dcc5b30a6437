/** A change that went live, as a flag on the chart. */
export type Marker = { id: number; time: string; label: string }

/** Flags that would overlap are one, with their number. */
export type Flag = { left: number; markers: Marker[] }

const flagWidth = 44

/** Puts the markers, each at its place, into flags from left to right. */
export function gather(placed: { left: number; marker: Marker }[]): Flag[] {
  const flags: Flag[] = []
  for (const { left, marker } of placed.toSorted((a, b) => a.left - b.left)) {
    const last = flags.at(-1)
    if (last && left - last.left < flagWidth) last.markers.push(marker)
    else flags.push({ left, markers: [marker] })
  }
  return flags
}
