import { counted, number } from '../lib/texts.ts'
import { usageOperations } from '../limit/operations.ts'
import type { UsageReport } from '../limit/schema.ts'
import { signalOperations } from '../signals/operations.ts'
import { inZone } from '../stats/intervals.ts'
import { statsOperations } from '../stats/operations.ts'
import type { SignalCounts, SignalStats } from '../stats/schema.ts'
import { drawBar, drawLine, percent } from './figures.ts'
import { fromOperations } from './operation_command.ts'
import type { AnyColumn, Column, Output } from './output.ts'
import { signalDataCommands } from './signal_data.ts'

type SignalRow = { id: number; value: string; created_at: string; metadata: object | null; subject?: string }

const signalColumns: AnyColumn<SignalRow>[] = [
  { name: 'id', cell: ({ id }) => String(id), isNumber: true },
  { name: 'value', cell: ({ value }) => `${value === 'positive' ? '▲' : '▼'} ${value}` },
  'created_at',
  { name: 'subject', cell: ({ subject = '-' }) => subject, shrinks: true },
  { name: 'metadata', cell: ({ metadata }) => (metadata ? JSON.stringify(metadata) : '-'), shrinks: true },
]

const operations = [...signalOperations, ...statsOperations, ...usageOperations]

const operationCommands = fromOperations(operations, [
  {
    usage:
      'signals list --prompt PROMPT [--url URL] [--value positive|negative] [--since TIME] [--until TIME] ' +
      '[--change ENTRY] [--metadata FIELD=TEXT]… [--limit N] [--cursor C]',
    description: 'lists the signals of a prompt, newest first',
    operation: 'listSignals',
    columns: signalColumns,
  },
  {
    usage:
      'signals stats --prompt PROMPT [--url URL] [--interval hour|day|week|month] [--since TIME] [--until TIME] ' +
      '[--tz ZONE] [--by metadata.FIELD]',
    description: 'counts the signals of a prompt over time; with --by, splits the newest by a metadata field',
    operation: 'getSignalStats',
    showsBody: true,
    show: ({ output }, stats) => showStats(output, stats),
  },
  {
    usage: 'usage --org ORG|--url URL',
    description: 'shows the usage of an organisation this month, by day and by prompt',
    operation: 'getUsage',
    show: ({ output }, { data }) => showUsage(output, data),
  },
])

export const commands = [...operationCommands, ...signalDataCommands]

const rateOf = (rate: number | null): string => (rate === null ? '-' : percent(rate))

/** A bar for the total. All bars share one scale, so that they can be compared. */
function barColumn<T extends { total: number }>(rows: T[]): Column<T> {
  const most = Math.max(...rows.map(({ total }) => total), 1)
  return { name: '', cell: ({ total }) => drawBar(total / most) }
}

function countColumns<T extends SignalCounts>(rows: T[]): Column<T>[] {
  return [
    { name: 'positive', cell: ({ positive }) => number(positive), isNumber: true },
    { name: 'negative', cell: ({ negative }) => number(negative), isNumber: true },
    { name: 'total', cell: ({ total }) => number(total), isNumber: true },
    { name: 'rate', cell: ({ rate }) => rateOf(rate), isNumber: true },
    barColumn(rows),
  ]
}

function showStats(output: Output, { data, totals, range, by }: SignalStats): void {
  if (by) {
    const rows = [
      ...by.values,
      { ...by.rest, value: counted(by.rest.values, 'other value') },
      { ...by.none, value: 'not set' },
    ].filter(({ total }) => total > 0)
    const name = `metadata.${by.key}`
    output.table(rows, [{ name, cell: ({ value }) => value, shrinks: true }, ...countColumns(rows)])
    output.say(by.complete ? `All ${counted(by.signals, 'signal')}.` : `The newest ${counted(by.signals, 'signal')}.`)
    return
  }
  const showStart = ({ start }: { start: string }) => {
    const local = inZone(range.tz, Date.parse(start)).toPlainDateTime().toString()
    return range.interval === 'hour' ? local.slice(0, 16).replace('T', ' ') : local.slice(0, 10)
  }
  output.table(data, [{ name: range.interval, cell: showStart }, ...countColumns(data)])
  const sum = `${counted(totals.total, 'signal')}, ${rateOf(totals.rate)} positive`
  output.say(`${drawLine(data.map(({ total }) => total))}  ${sum}`)
}

function showUsage(output: Output, usage: UsageReport['data']): void {
  const { plan, month, limit, used, remaining, resets_at, days, prompts, other_prompts: others } = usage
  const share = limit === 0 ? 1 : used / limit
  output.show({
    plan,
    month,
    used: `${number(used)} of ${number(limit)}, ${percent(share)}  ${drawBar(Math.min(share, 1))}`,
    remaining: number(remaining),
    resets_at,
    days: drawLine(days.map(({ total }) => total)),
  })
  const rest = { name: counted(others.prompts, 'other'), prompt: '-', repository: null, total: others.total }
  const rows = others.prompts > 0 ? [...prompts, rest] : prompts
  output.say('')
  output.table(rows, [
    'name…',
    'repository…',
    'prompt',
    { name: 'signals', cell: ({ total }) => number(total), isNumber: true },
    barColumn(rows),
  ])
}
