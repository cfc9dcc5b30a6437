import { maxPageSize } from '../lib/cursor_page.ts'
import { requireOrganisation } from '../orgs/manage.ts'
import { requirePrompt } from '../prompts/find.ts'
import { createSignalCounter } from '../signals/count.ts'
import { inZone } from '../signals/intervals.ts'
import { listSignals, type SignalRow, signalJson } from '../signals/list.ts'
import { parseSignalQuery, parseStatsQuery } from '../signals/read_query.ts'
import type { SignalCounts, SignalStats, Usage } from '../signals/schema_reads.ts'
import { readStats } from '../signals/stats.ts'
import { readUsage } from '../signals/usage.ts'
import { drawBar, drawLine } from './bars.ts'
import { integerOption, listOption, requiredOption, type Typed, UsageError, withUsageErrors } from './command.ts'
import { onDatabase } from './database.ts'
import type { Column, Output } from './output.ts'

export const signalCommands = onDatabase({
  'signals list': {
    usage:
      'signals list --prompt pmt_… [--value positive|negative] [--since TIME] [--until TIME] [--metadata FIELD=TEXT]… ' +
      '[--limit N] [--cursor C]',
    does: 'lists the signals of a prompt, newest first',
    values: ['prompt', 'value', 'since', 'until', 'metadata', 'limit', 'cursor'],
    required: ['prompt'],
    repeatable: ['metadata'],
    check: parseListQuery,
    async run({ db, typed, output }) {
      const { id } = await requirePrompt(db.sql, requiredOption(typed, 'prompt'))
      const { data, nextCursor } = await listSignals(db, id, parseListQuery(typed))
      output.table(data, signalColumns, signalJson)
      if (nextCursor) output.say(`There may be older ones: --cursor ${nextCursor}`)
    },
  },
  'signals stats': {
    usage:
      'signals stats --prompt pmt_… [--interval hour|day|week|month] [--since TIME] [--until TIME] [--tz ZONE] ' +
      '[--by metadata.FIELD]',
    does: 'counts the signals of a prompt over time; with --by, the newest of them by what their metadata has in a field',
    values: ['prompt', 'interval', 'since', 'until', 'tz', 'by'],
    required: ['prompt'],
    async run({ db, clock, typed, output }) {
      const { id } = await requirePrompt(db.sql, requiredOption(typed, 'prompt'))
      const { prompt: _, json, ...options } = typed.options
      const given = new URLSearchParams(options as Record<string, string>)
      const query = withUsageErrors(() => parseStatsQuery(given, clock.now()))
      const stats = await readStats(db, createSignalCounter(db, { patienceMs: Number.POSITIVE_INFINITY }), id, query)
      showStats(output, stats, json === true)
    },
  },
  usage: {
    usage: 'usage --org ORG',
    does: 'shows what an organisation has used of the month, by day and by prompt',
    values: ['org'],
    required: ['org'],
    async run({ db, clock, typed, output }) {
      const { id } = await requireOrganisation(db, requiredOption(typed, 'org'))
      const usage = await readUsage(db, clock, createSignalCounter(db, { patienceMs: Number.POSITIVE_INFINITY }), id)
      if (typed.options.json) output.show(usage)
      else showUsage(output, usage)
    },
  },
})

function parseListQuery(typed: Typed) {
  const { prompt: _, metadata: __, json: ___, ...options } = typed.options
  const query = new URLSearchParams(options as Record<string, string>)
  query.set('limit', String(Math.min(integerOption(typed, 'limit', 1) ?? 25, maxPageSize)))
  for (const filter of listOption(typed, 'metadata') ?? []) {
    const end = filter.indexOf('=')
    if (end < 1) throw new UsageError(`--metadata must be FIELD=TEXT, not "${filter}"`)
    query.append(`metadata.${filter.slice(0, end)}`, filter.slice(end + 1))
  }
  return withUsageErrors(() => parseSignalQuery(query))
}

const maxShownMetadata = 100

/** Removes control characters, which could steer the terminal, and cuts the text to what fits on a line. */
function shorten(text: string): string {
  const line = text.replace(/\p{Cc}+/gu, ' ')
  return line.length > maxShownMetadata ? `${line.slice(0, maxShownMetadata - 1)}…` : line
}

const colourOf = ({ value }: { value: string }) => (value === 'positive' ? 'blue' : 'orange')

const signalColumns: Column<SignalRow>[] = [
  { name: 'id', cell: ({ id }) => String(id), isNumber: true },
  { name: 'value', cell: ({ value }) => `${value === 'positive' ? '▲' : '▼'} ${value}`, colour: colourOf },
  { name: 'created_at', cell: ({ created_at }) => created_at.toISOString() },
  { name: 'metadata', cell: ({ metadata }) => (metadata === null ? '-' : shorten(metadata)) },
]

const number = (count: number): string => count.toLocaleString('en-GB')
const percent = (share: number | null): string => (share === null ? '-' : `${(share * 100).toFixed(1)} %`)

/** The counts, and a bar for the total; one scale for all, so that the bars can be compared. */
function countColumns<T extends SignalCounts>(rows: T[]): Column<T>[] {
  const most = Math.max(...rows.map(({ total }) => total), 1)
  return [
    { name: 'positive', cell: ({ positive }) => number(positive), isNumber: true },
    { name: 'negative', cell: ({ negative }) => number(negative), isNumber: true },
    { name: 'total', cell: ({ total }) => number(total), isNumber: true },
    { name: 'rate', cell: ({ rate }) => percent(rate), isNumber: true },
    { name: '', cell: ({ total }) => drawBar(total / most), colour: () => 'blue' },
  ]
}

function showStats(output: Output, { data, totals, range, by }: SignalStats, isForProgram: boolean): void {
  if (by) {
    const rows = [
      ...by.values.map((row) => ({ kind: 'value', ...row })),
      { kind: 'rest', value: null, ...by.rest },
      { kind: 'none', value: null, ...by.none },
    ].filter(({ total }) => total > 0)
    const names = { rest: `${number(by.rest.values)} other values`, none: 'without it' }
    const nameOf = ({ kind, value }: { kind: string; value: string | null }) =>
      value === null ? names[kind as 'rest' | 'none'] : shorten(value)
    output.table(rows, [{ name: `metadata.${by.key}`, cell: nameOf }, ...countColumns(rows)])
    output.say(by.complete ? `All ${number(by.signals)} signals.` : `The newest ${number(by.signals)} signals.`)
    return
  }
  const showStart = ({ start }: { start: string }) => {
    const local = inZone(range.tz, Date.parse(start)).toPlainDateTime().toString()
    return range.interval === 'hour' ? local.slice(0, 16).replace('T', ' ') : local.slice(0, 10)
  }
  output.table(data, [{ name: range.interval, cell: showStart }, ...countColumns(data)])
  if (isForProgram) return
  const sum = `${number(totals.total)} signals, ${percent(totals.rate)} positive`
  output.say(`${drawLine(data.map(({ total }) => total))}  ${sum}`)
}

function showUsage(output: Output, usage: Usage['data']): void {
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
  const rows = others.prompts > 0 ? [...prompts, { prompt: `${number(others.prompts)} others`, ...others }] : prompts
  const most = Math.max(...rows.map(({ total }) => total), 1)
  output.say('')
  output.table(rows, [
    { name: 'prompt', cell: ({ prompt }) => prompt },
    { name: 'signals', cell: ({ total }) => number(total), isNumber: true },
    { name: '', cell: ({ total }) => drawBar(total / most), colour: () => 'blue' },
  ])
}
