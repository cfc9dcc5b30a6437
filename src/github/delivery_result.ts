// What became of a delivery, as GitHub shows it under Recent Deliveries.

/** A push that does not show everything that happened to the default branch. A clone does. */
const gaps = {
  force_push: 'The force push removed commits from the branch, and does not say which',
  too_many_commits: 'GitHub lists at most 2,048 commits of a push',
  files_not_listed: 'GitHub has not listed the files of every commit',
}

export type Gap = keyof typeof gaps

const messages = {
  recorded: 'The histories have new or changed entries.',
  unchanged: 'The delivery changed no history.',
  repeated: 'The delivery was already recorded.',
  ignored: 'This event does not change a history.',
  unlinked_repository: 'No prompt is linked to a file of this repository.',
  unlinked_files: 'No prompt is linked to a file that this push changes.',
}

export type DeliveryOutcome = keyof typeof messages | Gap

export const outcomes = Object.keys({ ...messages, ...gaps }) as DeliveryOutcome[]

export const isGap = (outcome: DeliveryOutcome): outcome is Gap => outcome in gaps

export type DeliveryResult = { recorded: number; outcome: DeliveryOutcome; message: string }

export const resultOf = (outcome: DeliveryOutcome, recorded = 0): DeliveryResult => ({
  recorded,
  outcome,
  message: isGap(outcome) ? `${gaps[outcome]}. Run prompt-signals sync to complete the histories.` : messages[outcome],
})

/** GitHub sends a ping when the webhook is added. */
export const pingResult: DeliveryResult = { ...resultOf('ignored'), message: 'Ping received: the webhook works.' }

export type DeliveryObserver = {
  /** Called for each delivery, with the public id of its organisation. */
  ended(result: DeliveryResult, org: string): void
}
