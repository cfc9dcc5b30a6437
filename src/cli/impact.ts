import { readImpact } from '../impact/read.ts'
import type { Impact } from '../impact/schema.ts'
import { impactParams } from '../impact/schema_params.ts'
import { comparisonKinds, describeChange, showDifference } from '../impact/sentence.ts'
import { requirePrompt } from '../prompts/find.ts'
import { createSignalRollup } from '../stats/rollup.ts'
import { onDatabase } from './database.ts'
import { drawInterval, number, percent } from './figures.ts'
import type { Column } from './output.ts'

export const commands = onDatabase([
  {
    usage: 'impact --prompt PROMPT [--margin M] [--base ID --head ID] [--page N] [--limit N]',
    description:
      'shows what each change of a prompt did to its signals, newest first, or compares the change --head with --base',
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
])

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
  action === 'deployed' ? `deployed ${commit_sha.slice(0, 7)}` : `merged #${pr_number}`
