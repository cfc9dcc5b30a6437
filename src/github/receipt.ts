// What became of a delivery, as GitHub shows it under Recent Deliveries.

/** A push that does not say all of what happened to the default branch; a clone does. */
const gaps = {
  force_push: 'The push removed commits from the branch, and does not say which',
  too_many_commits: 'GitHub lists no more than 2,048 commits of a push',
  files_not_listed: 'GitHub has not listed the files of every commit',
}

export type Gap = keyof typeof gaps

const messages = {
  recorded: 'The histories have new or changed entries.',
  unchanged: 'The delivery changed no history.',
  repeated: 'The delivery was recorded before.',
  ignored: 'The event is not one that changes a history.',
  unlinked_repository: 'No prompt is linked to a file of this repository.',
  unlinked_files: 'No prompt is linked to a file that this push changes.',
}

export type DeliveryOutcome = keyof typeof messages | Gap

export const outcomes = Object.keys({ ...messages, ...gaps }) as DeliveryOutcome[]

export const isGap = (outcome: DeliveryOutcome): outcome is Gap => outcome in gaps

export type Receipt = { recorded: number; outcome: DeliveryOutcome; message: string }

export const receiptOf = (outcome: DeliveryOutcome, recorded = 0): Receipt => ({
  recorded,
  outcome,
  message: isGap(outcome) ? `${gaps[outcome]}. Run prompt-signals sync to complete the histories.` : messages[outcome],
})

export type DeliveryObserver = {
  /** Called for each delivery, with the public id of its organisation. */
  ended(receipt: Receipt, org: string): void
}
