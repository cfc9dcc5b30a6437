/** How long everything is measured. What is compared is measured in rounds that alternate. */
export type Plan = {
  warmUpSeconds: number
  roundSeconds: number
  rounds: number
  memorySeconds: number
  /** How long a snapshot is held open before the rate under it is measured. */
  snapshotSeconds: number
  /** How many signals the prompt has that they are read back from. */
  signalsToRead: number
}

/** How long to measure this time; a warm-up of zero seconds is none. */
export type Round = { warmUpSeconds: number; seconds: number }

export const fullPlan: Plan = {
  warmUpSeconds: 2,
  roundSeconds: 3,
  rounds: 5,
  memorySeconds: 60,
  snapshotSeconds: 75,
  signalsToRead: 10_000_000,
}

export const quickPlan: Plan = {
  warmUpSeconds: 1,
  roundSeconds: 1,
  rounds: 3,
  memorySeconds: 10,
  snapshotSeconds: 15,
  signalsToRead: 200_000,
}
