import type { ImpactSource } from '../impact/command_source.ts'
import { type Impact, impactParams } from '../impact/schema.ts'
import { compareParams, type SideBySide } from '../impact/schema_compare.ts'
import {
  comparisonKinds,
  describeChange,
  describeSides,
  shortenCommit,
  showDifference,
  verdictSigns,
} from '../impact/sentence.ts'
import { counted, number } from '../lib/texts.ts'
import { type Arguments, type Command, type Context, UsageError } from './command.ts'
import { drawInterval, percent } from './figures.ts'
import type { Column } from './output.ts'
import { checkUrl, withSource } from './remote.ts'

export const commands: Command[] = [
  {
    usage:
      'impact --prompt PROMPT [--url URL] [--margin M] [--base ID --head ID] [--page N] [--limit N] [--fail-on VERDICTS]',
    description:
      'shows the signals before and after each change of a prompt, newest first, or compares the change --head with ' +
      '--base; --fail-on exits with status 1 if the first verdict shown is one of these',
    check(args) {
      checkUrl(args)
      failOnOption(args)
      args.asQuery(impactParams.parse)
    },
    run: (context) => withSource(context, showImpact),
  },
  {
    usage:
      'compare --prompt PROMPT --base SHA --head SHA [--url URL] [--since TIME] [--until TIME] [--margin M] ' +
      '[--fail-on VERDICTS]',
    description:
      'compares two versions of a prompt that ran side by side, by their commits; --fail-on exits ' +
      'with status 1 if the verdict is one of these',
    check(args) {
      checkUrl(args)
      failOnOption(args)
      args.asQuery(compareParams.parse)
    },
    run: (context) => withSource(context, showCompare),
  },
]

async function showImpact({ args, output }: Context, source: ImpactSource): Promise<void> {
  const query = args.asQuery(impactParams.parse)
  const { totalCount, data } = await source.readImpact(args.required('prompt'), queryOf(args, impactParams))
  const [newest, other] = data
  if (newest && !args.options.json) {
    output.say(describeChange(newest, query.pair ? other?.change : undefined))
    output.say(`${comparisonKinds.beforeAfter}\n`)
  }
  if (totalCount === 0 && !args.options.json) {
    output.say('No change has gone live yet. Record one with "prompt-signals history record" or "prompt-signals sync".')
  } else {
    output.table(data, columnsFor(data))
  }
  const pages = Math.ceil(totalCount / query.limit)
  if (query.page < pages) output.say(`For older changes: --page ${query.page + 1} of ${pages}`)
  failOn(args, newest?.verdict ?? null)
}

async function showCompare({ args, output }: Context, source: ImpactSource): Promise<void> {
  const compared = await source.readCompare(args.required('prompt'), queryOf(args, compareParams))
  const { base, head, overlap, notes, share, verdict } = compared
  if (args.options.json) {
    output.show(compared)
    return failOn(args, verdict)
  }
  for (const line of [describeSides(compared), comparisonKinds.sideBySide, ...notes, '']) output.say(line)
  output.table(
    [
      { name: 'base', side: base },
      { name: 'head', side: head },
    ],
    sideColumns,
  )
  if (overlap.days > 0) {
    output.say(`\nCompared on ${counted(overlap.days, 'day')}, ${overlap.from} to ${overlap.until}.`)
    output.say(`Share of the head: ${percent(share ?? 0)} %.`)
  }
  failOn(args, verdict)
}

/** The options that are parameters of an endpoint. */
function queryOf(args: Arguments, { schema }: typeof impactParams | typeof compareParams): URLSearchParams {
  const query = new URLSearchParams()
  for (const name of Object.keys(schema.properties)) if (args.text(name) !== null) query.set(name, args.required(name))
  return query
}

function failOnOption(args: Arguments): string[] {
  const verdicts = args.text('fail-on')?.split(',') ?? []
  const wrong = verdicts.find((verdict) => !['worse', 'undecided'].includes(verdict))
  if (wrong === undefined) return verdicts
  throw new UsageError(`--fail-on must be worse, or worse,undecided, not "${args.text('fail-on')}"`)
}

/** Fails the command by the verdict. Nothing to compare with is undecided: a gate must not let that through. */
function failOn(args: Arguments, verdict: Impact['verdict']): void {
  const reached = verdict ?? 'undecided'
  if (failOnOption(args).includes(reached)) throw new Error(`The verdict is ${reached}.`)
}

const sideColumns: Column<{ name: string; side: SideBySide['head'] }>[] = [
  { name: 'side', cell: ({ name }) => name },
  { name: 'commit', cell: ({ side }) => shortenCommit(side.commit, 12) },
  { name: 'change', cell: ({ side }) => (side.change ? nameOf(side.change) : '-') },
  { name: 'signals', cell: ({ side }) => number(side.signals.total), isNumber: true },
  { name: 'compared', cell: ({ side }) => number(side.signals.compared), isNumber: true },
  { name: 'positive', cell: ({ side: { rate } }) => (rate ? `${percent(rate.value)} %` : '-'), isNumber: true },
]

const colours = { better: 'blue', worse: 'orange', same: null, undecided: 'grey' } as const

function columnsFor(impacts: Impact[]): Column<Impact>[] {
  // All bars share one scale, so that they can be compared.
  const reach = Math.max(...impacts.flatMap(({ difference: d }) => (d ? [-d.low, d.high] : [])), 0.01)
  const colour = ({ verdict }: Impact) => verdict && colours[verdict]
  return [
    { name: 'verdict', cell: ({ verdict }) => (verdict ? `${verdictSigns[verdict]} ${verdict}` : '-'), colour },
    {
      name: 'difference',
      cell({ rate, difference }) {
        const shown = rate && difference && showDifference(rate, difference)
        return shown ? `${shown.points} (${shown.low}…${shown.high})` : '-'
      },
    },
    { name: '', cell: ({ difference: d }) => (d ? drawInterval(d, reach) : ''), colour },
    { name: 'positive', cell: ({ rate }) => (rate ? `${percent(rate.value)} %` : '-'), isNumber: true },
    { name: 'signals', cell: ({ signals }) => number(signals.total), isNumber: true },
    { name: 'id', cell: ({ change }) => String(change.id), isNumber: true },
    { name: 'change', cell: ({ change }) => nameOf(change) },
    { name: 'date', cell: ({ change }) => change.created_at.slice(0, 10) },
    { name: 'title', cell: ({ change }) => change.title ?? '-', shrinks: true },
  ]
}

const nameOf = ({ action, commit_sha, pr_number }: Impact['change']): string =>
  pr_number === null ? `${action} ${shortenCommit(commit_sha)}` : `${action.replace('pr_', '')} #${pr_number}`
