import { readImpact } from '../impact/read.ts'
import { readCompare } from '../impact/read_compare.ts'
import type { Impact } from '../impact/schema.ts'
import type { SideBySide } from '../impact/schema_compare.ts'
import { compareParams, impactParams } from '../impact/schema_params.ts'
import { comparisonKinds, describeChange, describeSides, showDifference } from '../impact/sentence.ts'
import { requirePrompt } from '../prompts/find.ts'
import { createSignalRollup } from '../stats/rollup.ts'
import { onDatabase } from './database.ts'
import { counted, drawInterval, number, percent } from './figures.ts'
import type { Column } from './output.ts'

export const commands = onDatabase([
  {
    usage: 'impact --prompt PROMPT [--margin M] [--base ID --head ID] [--page N] [--limit N]',
    description:
      'shows the signals before and after each change of a prompt, newest first, or compares the change --head with --base',
    check: (args) => args.asQuery(impactParams.parse),
    async run({ db, args, output }) {
      const prompt = await requirePrompt(db.sql, args.required('prompt'))
      const query = args.asQuery(impactParams.parse)
      const rollup = createSignalRollup(db, { patienceMs: Number.POSITIVE_INFINITY })
      const { totalCount, data } = await readImpact(db, rollup, prompt, query)
      const [newest, other] = data
      if (newest && !args.options.json) {
        output.say(describeChange(newest, query.pair ? other?.change : undefined))
        output.say(`${comparisonKinds.beforeAfter}\n`)
      }
      output.table(data, columnsFor(data))
      const pages = Math.ceil(totalCount / query.limit)
      if (query.page < pages) output.say(`For older changes: --page ${query.page + 1} of ${pages}`)
    },
  },
  {
    usage: 'compare --prompt PROMPT --base SHA --head SHA [--since TIME] [--until TIME] [--margin M]',
    description: 'compares two versions of a prompt that ran side by side, by the commits that their signals name',
    check: (args) => args.asQuery(compareParams.parse),
    async run({ db, args, output }) {
      const prompt = await requirePrompt(db.sql, args.required('prompt'))
      const rollup = createSignalRollup(db, { patienceMs: Number.POSITIVE_INFINITY })
      const compared = await readCompare(db, rollup, prompt, args.asQuery(compareParams.parse))
      if (args.options.json) return output.show(compared)
      const { base, head, overlap, notes, share } = compared
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
    },
  },
])

const sideColumns: Column<{ name: string; side: SideBySide['head'] }>[] = [
  { name: 'side', cell: ({ name }) => name },
  { name: 'commit', cell: ({ side }) => side.commit.slice(0, 12) },
  { name: 'change', cell: ({ side }) => (side.change ? nameOf(side.change) : '-') },
  { name: 'signals', cell: ({ side }) => number(side.signals.total), isNumber: true },
  { name: 'compared', cell: ({ side }) => number(side.signals.compared), isNumber: true },
  { name: 'positive', cell: ({ side: { rate } }) => (rate ? `${percent(rate.value)} %` : '-'), isNumber: true },
]

const verdicts = {
  better: { shown: '▲ better', colour: 'blue' },
  worse: { shown: '▼ worse', colour: 'orange' },
  same: { shown: '= same', colour: null },
  undecided: { shown: '? undecided', colour: 'grey' },
} as const

function columnsFor(impacts: Impact[]): Column<Impact>[] {
  // All bars share one scale, so that they can be compared.
  const reach = Math.max(...impacts.flatMap(({ difference: d }) => (d ? [-d.low, d.high] : [])), 0.01)
  const colour = ({ verdict }: Impact) => verdict && verdicts[verdict].colour
  return [
    { name: 'verdict', cell: ({ verdict }) => (verdict ? verdicts[verdict].shown : '-'), colour },
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
  pr_number === null ? `${action} ${commit_sha.slice(0, 7)}` : `${action.replace('pr_', '')} #${pr_number}`
