import { counted, number } from '../lib/texts.ts'
import type { UsageReport } from '../limit/schema.ts'
import { readUsage } from '../limit/usage.ts'
import { requireOrganisation } from '../orgs/manage.ts'
import { requirePrompt } from '../prompts/find.ts'
import { listSignals, type SignalRow, signalJson } from '../signals/read.ts'
import { type SignalListQuery, signalListParams } from '../signals/schema_params.ts'
import { inZone } from '../stats/intervals.ts'
import { parseStatsQuery, readStats } from '../stats/read.ts'
import { createSignalRollup } from '../stats/rollup.ts'
import { type SignalCounts, type SignalStats, statsParams } from '../stats/schema.ts'
import { type Arguments, UsageError } from './command.ts'
import { onDatabase } from './database.ts'
import { drawBar, drawLine, percent } from './figures.ts'
import type { AnyColumn, Column, Output } from './output.ts'
import { signalDataCommands } from './signal_data.ts'
import { signalImportCommands } from './signal_import.ts'

const patient = { patienceMs: Number.POSITIVE_INFINITY }

const readCommands = onDatabase([
  {
    usage:
      'signals list --prompt PROMPT [--value positive|negative] [--since TIME] [--until TIME] [--metadata FIELD=TEXT]… ' +
      '[--limit N] [--cursor C]',
    description: 'lists the signals of a prompt, newest first',
    check: parseListQuery,
    async run({ db, args, output }) {
      const prompt = await requirePrompt(db.sql, args.required('prompt'))
      const { data, nextCursor } = await listSignals(db, prompt, parseListQuery(args))
      output.table(data, signalColumns, signalJson)
      if (nextCursor) output.say(`For older signals: --cursor ${nextCursor}`)
    },
  },
  {
    usage:
      'signals stats --prompt PROMPT [--interval hour|day|week|month] [--since TIME] [--until TIME] [--tz ZONE] ' +
      '[--by metadata.FIELD]',
    description: 'counts the signals of a prompt over time; with --by, splits the newest by a metadata field',
    check: (args) => args.asQuery(statsParams.parse),
    async run({ db, clock, args, output }) {
      const prompt = await requirePrompt(db.sql, args.required('prompt'))
      const query = args.asQuery((given) => parseStatsQuery(given, clock.now()))
      const stats = await readStats(db, createSignalRollup(db, patient), prompt, query)
      if (args.options.json && stats.by) output.show(stats.by)
      else showStats(output, stats, args.options.json === true)
    },
  },
  {
    usage: 'usage --org ORG',
    description: 'shows the usage of an organisation this month, by day and by prompt',
    async run({ db, clock, args, output }) {
      const { id } = await requireOrganisation(db, args.required('org'))
      const usage = await readUsage(db, clock, createSignalRollup(db, patient), id)
      if (args.options.json) output.show(usage)
      else showUsage(output, usage)
    },
  },
])

export const commands = [...readCommands, ...signalImportCommands, ...signalDataCommands]

function parseListQuery(args: Arguments): SignalListQuery {
  return args.asQuery((query) => {
    for (const filter of args.list('metadata') ?? []) {
      const end = filter.indexOf('=')
      if (end < 1) throw new UsageError(`--metadata must be FIELD=TEXT, not "${filter}"`)
      query.append(`metadata.${filter.slice(0, end)}`, filter.slice(end + 1))
    }
    return signalListParams.parse(query)
  })
}

const colourOf = ({ value }: { value: string }) => (value === 'positive' ? 'blue' : 'orange')

const signalColumns: AnyColumn<SignalRow>[] = [
  { name: 'id', cell: ({ id }) => String(id), isNumber: true },
  { name: 'value', cell: ({ value }) => `${value === 'positive' ? '▲' : '▼'} ${value}`, colour: colourOf },
  'created_at',
  { name: 'metadata', cell: ({ metadata }) => metadata ?? '-', shrinks: true },
]

const rateOf = (rate: number | null): string => (rate === null ? '-' : `${percent(rate)} %`)

/** A bar for the total. All bars share one scale, so that they can be compared. */
function barColumn<T extends { total: number }>(rows: T[]): Column<T> {
  const most = Math.max(...rows.map(({ total }) => total), 1)
  return { name: '', cell: ({ total }) => drawBar(total / most), colour: () => 'blue' }
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

function showStats(output: Output, { data, totals, range, by }: SignalStats, isForProgram: boolean): void {
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
  if (isForProgram) return
  const sum = `${counted(totals.total, 'signal')}, ${rateOf(totals.rate)} positive`
  output.say(`${drawLine(data.map(({ total }) => total))}  ${sum}`)
}

function showUsage(output: Output, usage: UsageReport['data']): void {
  const { plan, month, limit, used, remaining, resets_at, days, prompts, other_prompts: others } = usage
  const share = limit === 0 ? 1 : used / limit
  output.show({
    plan,
    month,
    used: `${number(used)} of ${number(limit)}, ${percent(share)} %  ${drawBar(Math.min(share, 1))}`,
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
