import { readImpact } from '../impact/read.ts'
import type { Impact } from '../impact/schema.ts'
import { impactParams } from '../impact/schema_params.ts'
import { requirePrompt } from '../prompts/find.ts'
import { createSignalRollup } from '../stats/rollup.ts'
import { onDatabase } from './database.ts'
import { drawInterval, number, percent } from './figures.ts'
import type { Column } from './output.ts'

export const commands = onDatabase([
  {
    usage: 'impact --prompt pmt_… [--margin M] [--base ID --head ID] [--page N] [--limit N]',
    description:
      'shows what each change of a prompt did to its signals, newest first, or compares the change --head with --base',
    check: (args) => args.asQuery(impactParams.parse),
    async run({ db, args, output }) {
      const prompt = await requirePrompt(db.sql, args.required('prompt'))
      const query = args.asQuery(impactParams.parse)
      const rollup = createSignalRollup(db, { patienceMs: Number.POSITIVE_INFINITY })
      const { totalCount, data } = await readImpact(db, rollup, prompt, query)
      const [newest] = data
      if (newest && !args.options.json) output.say(`${describe(newest)}\n`)
      output.table(data, columnsFor(data))
      const pages = Math.ceil(totalCount / query.limit)
      if (query.page < pages) output.say(`For older changes: --page ${query.page + 1} of ${pages}`)
    },
  },
])

const verdicts = {
  better: { shown: '▲ better', colour: 'blue', says: 'made it better' },
  worse: { shown: '▼ worse', colour: 'orange', says: 'made it worse' },
  same: { shown: '= same', colour: null, says: 'made no difference that matters' },
  undecided: { shown: '? undecided', colour: 'grey', says: 'has not been decided yet' },
} as const

function columnsFor(impacts: Impact[]): Column<Impact>[] {
  // All bars share one scale, so that they can be compared.
  const reach = Math.max(...impacts.flatMap(({ difference: d }) => (d ? [-d.low, d.high] : [])), 0.01)
  const colour = ({ verdict }: Impact) => verdict && verdicts[verdict].colour
  return [
    { name: 'verdict', cell: ({ verdict }) => (verdict ? verdicts[verdict].shown : '-'), colour },
    {
      name: 'difference',
      cell: ({ difference: d }) => (d ? `${points(d.value)} (${points(d.low)}…${points(d.high)})` : '-'),
    },
    { name: '', cell: ({ difference: d }) => (d ? drawInterval(d, reach) : ''), colour },
    {
      name: 'positive',
      cell: ({ rate }) => (rate ? `${percent(rate.value)} % (${percent(rate.low)}…${percent(rate.high)})` : '-'),
    },
    { name: 'signals', cell: ({ signals }) => number(signals.total), isNumber: true },
    {
      name: 'needed',
      cell: ({ signals_needed }) => (signals_needed === null ? '-' : `≈ ${number(signals_needed)}`),
      isNumber: true,
    },
    { name: 'change', cell: ({ change }) => `${nameOf(change)} ${change.commit_sha.slice(0, 7)}` },
    { name: 'id', cell: ({ change }) => String(change.id), isNumber: true },
    { name: 'user', cell: ({ change }) => change.user.name },
    { name: 'created_at', cell: ({ change }) => change.created_at },
    { name: 'title', cell: ({ change }) => change.title ?? '-' },
  ]
}

const nameOf = ({ action, pr_number }: Impact['change']): string =>
  action === 'deployed' ? 'deployed' : `merged #${pr_number}`
const points = (difference: number): string => `${difference < 0 ? '−' : '+'}${percent(Math.abs(difference))}`

function describe({ change, signals, rate, difference, verdict, signals_needed }: Impact): string {
  const what = change.action === 'deployed' ? change.commit_sha.slice(0, 7) : `PR #${change.pr_number}`
  const subject = `${what} by ${change.user.name}`
  if (!rate) return `${subject} has no signals yet.`
  const count = `${number(signals.total)} signals`
  if (!difference) return `${subject} has nothing to compare with: ${percent(rate.value)} % positive, ${count}.`
  const { says } = verdicts[verdict ?? 'undecided']
  const from = percent(rate.value - difference.value)
  const sure = `${points(difference.value)} points, between ${points(difference.low)} and ${points(difference.high)}`
  const tells =
    signals_needed === null
      ? ' More signals would not decide it: the other change has too few.'
      : ` About ${number(signals_needed)} more signals would decide it.`
  return `${subject} ${says}: ${from} → ${percent(rate.value)} % positive (${sure}), ${count}.${verdict === 'undecided' ? tells : ''}`
}
