import { impactOperations } from '../impact/operations.ts'
import { isUnknown } from '../impact/rate.ts'
import type { RateChange } from '../impact/rate_change.ts'
import { type Impact, verdictNames } from '../impact/schema.ts'
import type { SideBySide } from '../impact/schema_compare.ts'
import {
  comparisonKinds,
  describeChange,
  describeRateChange,
  describeSides,
  describeWander,
  shortenCommit,
  showDifference,
  verdictSigns,
} from '../impact/sentence.ts'
import { showNumber } from '../lib/repository_links.ts'
import { counted, number } from '../lib/texts.ts'
import { type Arguments, type Context, UsageError } from './command.ts'
import { drawInterval, percent } from './figures.ts'
import { fromOperations } from './operation_command.ts'
import type { Column, Output } from './output.ts'

export const commands = fromOperations(impactOperations, [
  {
    usage:
      'impact --prompt PROMPT [--url URL] [--margin M] [--base ID --head ID] [--page N] [--limit N] [--fail-on VERDICTS]',
    description:
      'shows the signals before and after each change of a prompt, newest first, or compares the change --head with --base',
    operation: 'getPromptImpact',
    check: failOnOption,
    show: showImpact,
    judge: (args, [newest]) => failOn(args, newest),
  },
  {
    usage:
      'compare --prompt PROMPT --base SHA --head SHA [--url URL] [--since TIME] [--until TIME] [--margin M] ' +
      '[--share S] [--fail-on VERDICTS]',
    description: 'compares two versions of a prompt that ran side by side, by their commits',
    operation: 'comparePrompt',
    check: failOnOption,
    show: ({ output }, { data }) => showCompare(output, data),
    judge: failOn,
  },
])

type ImpactBody = {
  data: Impact[]
  rate_changed: RateChange | null
  pagination: { total_count: number; total_pages: number; current_page: number }
}

function showImpact({ args, output }: Context, { data, pagination, rate_changed: rateChanged }: ImpactBody): void {
  const [newest] = data
  if (newest) {
    output.say(describeChange(newest, args.text('base') !== null))
    if (newest.wander) output.say(describeWander(newest.wander))
    if (rateChanged) output.say(describeRateChange(rateChanged))
    output.say(`${comparisonKinds.beforeAfter}\n`)
  }
  const { total_count: count, total_pages: pages, current_page: page } = pagination
  if (count > 0) output.table(data, columnsFor(data))
  else
    output.say('No change has gone live yet. Record one with "prompt-signals history record" or "prompt-signals sync".')
  if (page < pages) output.say(`For older changes: --page ${page + 1} of ${pages}`)
}

function showCompare(output: Output, compared: SideBySide): void {
  const { base, head, overlap, notes, share } = compared
  for (const line of [describeSides(compared), comparisonKinds.sideBySide, ...notes, '']) output.say(line)
  output.table(
    [
      { name: 'base', side: base },
      { name: 'head', side: head },
    ],
    sideColumns,
  )
  if (overlap.days === 0) return
  output.say(`\nCompared on ${counted(overlap.days, 'day')}, ${overlap.from} to ${overlap.until}.`)
  output.say(`Share of the head: ${percent(share ?? 0)}.`)
}

function failOnOption(args: Arguments): string[] {
  const verdicts = args.text('fail-on')?.split(',') ?? []
  const isKnown = (verdict: string) => verdictNames.some((name) => name === verdict)
  if (verdicts.every(isKnown)) return verdicts
  throw new UsageError(`--fail-on must be some of ${verdictNames}, not "${args.text('fail-on')}"`)
}

/** Fails the command by the verdict. Nothing to compare with is undecided: a gate must not let that through. */
function failOn(args: Arguments, result: Pick<Impact, 'verdict'> | undefined): void {
  const reached = result?.verdict ?? 'undecided'
  if (failOnOption(args).includes(reached)) throw new Error(`The verdict is ${reached}.`)
}

const sideColumns: Column<{ name: string; side: SideBySide['head'] }>[] = [
  { name: 'side', cell: ({ name }) => name },
  { name: 'commit', cell: ({ side }) => shortenCommit(side.commit, 12) },
  { name: 'change', cell: ({ side }) => (side.change ? nameOf(side.change) : '-') },
  { name: 'signals', cell: ({ side }) => number(side.signals.total), isNumber: true },
  { name: 'compared', cell: ({ side }) => number(side.signals.compared), isNumber: true },
  { name: 'positive', cell: ({ side: { rate } }) => (rate ? percent(rate.value) : '-'), isNumber: true },
]

function columnsFor(impacts: Impact[]): Column<Impact>[] {
  // All bars share one scale, so that they can be compared.
  const known = impacts.flatMap(({ difference }) => (difference && !isUnknown(difference) ? difference : []))
  const reach = Math.max(...known.flatMap(({ low, high }) => [-low, high]), 0.01)
  return [
    { name: 'verdict', cell: ({ verdict }) => (verdict ? `${verdictSigns[verdict]} ${verdict}` : '-') },
    {
      name: 'difference',
      cell({ rate, difference }) {
        const shown = rate && difference && showDifference(rate, difference)
        if (!shown) return '-'
        return isUnknown(difference) ? shown.points : `${shown.points} (${shown.low}…${shown.high})`
      },
    },
    { name: '', cell: ({ difference: d }) => (d && !isUnknown(d) ? drawInterval(d, reach) : '') },
    { name: 'positive', cell: ({ rate }) => (rate ? percent(rate.value) : '-'), isNumber: true },
    { name: 'signals', cell: ({ signals }) => number(signals.total), isNumber: true },
    { name: 'id', cell: ({ change }) => String(change.id), isNumber: true },
    { name: 'change', cell: ({ change }) => nameOf(change) },
    { name: 'date', cell: ({ change }) => change.created_at.slice(0, 10) },
    { name: 'title', cell: ({ change }) => change.title ?? '-', shrinks: true },
  ]
}

const nameOf = (change: Impact['change']): string =>
  change.pr_number === null
    ? `${change.action} ${shortenCommit(change.commit_sha)}`
    : `${change.action.replace('pr_', '')} ${showNumber(change)}`
