import type { RateChange } from '../impact/rate_change.ts'
import { type ChangeImpact, type ChangeListQuery, requestParams } from '../impact/schema_changes.ts'
import { comparisonKinds, describeRateChange, nameAuthors, nameChange, verdictSigns } from '../impact/sentence.ts'
import { maxPageSize, writeParams } from '../lib/params.ts'
import { pullRequestWords } from '../lib/repository_links.ts'
import { type Call, dataOf } from '../lib/rest.ts'
import { counted, oneLine } from '../lib/texts.ts'
import { dayMs, parseTime } from '../lib/times.ts'
import { checkService, withApi } from './api.ts'
import { type Arguments, type Command, type Context, UsageError } from './command.ts'

export const commands: Command[] = [
  {
    usage:
      'report [--org ORG|--url URL] [--prompt PROMPT] [--since 7d] [--pr N|URL] [--commit SHA] ' +
      '[--format text|markdown|json]',
    description: 'shows the changes of a time with their verdicts, for a pull request, a job summary or an e-mail',
    check(args) {
      checkService(args)
      reportQuery(args, new Date(0))
    },
    run: (context) => withApi(context, 'reader', showReport),
  },
]

async function showReport({ args, clock, config, output }: Context, call: Call): Promise<void> {
  const query = reportQuery(args, clock.now())
  const report = await readReport(call, query)
  const format = args.options.json ? 'json' : args.text('format')
  if (format === 'json') return output.text(report.changes.map((change) => `${JSON.stringify(change)}\n`).join(''))
  const consoleUrl = args.text('url')?.replace(/\/+$/, '') ?? config.PUBLIC_URL ?? ''
  const style = format === 'markdown' ? markdownStyle : textStyle
  output.text(writeReport(report, query, style, format === 'markdown' ? consoleUrl : ''))
}

/** How far back a report looks; all the way for a pull request or a commit, which is only one. */
const defaultDays = 7

/** Which changes a report shows. Null stands for any: since the beginning, of all prompts. */
type ReportQuery = Pick<ChangeListQuery, 'since' | 'prompt' | 'pr' | 'commit'>

function reportQuery(args: Arguments, now: Date): ReportQuery {
  const [since, pr, commit] = [args.text('since'), args.text('pr'), args.text('commit')]
  if (pr !== null && commit !== null) throw new UsageError('give either --pr or --commit')
  for (const [name, { parse, expected }] of Object.entries(requestParams)) {
    const text = args.text(name)
    if (text !== null && parse([text]) === undefined)
      throw new UsageError(`--${name} must be ${expected}, not "${text}"`)
  }
  const isWhole = isOfOne({ pr, commit }) && since === null
  const from = isWhole ? null : parseSince(since ?? `${defaultDays}d`, now)
  return { since: from, prompt: args.text('prompt'), pr, commit }
}

const isOfOne = ({ pr, commit }: Pick<ReportQuery, 'pr' | 'commit'>): boolean => pr !== null || commit !== null

function parseSince(text: string, now: Date): Date {
  const given = /^(\d{1,5})d$/.exec(text)
  const since = given ? new Date(now.getTime() - Number(given[1]) * dayMs) : parseTime(text)
  if (since) return since
  throw new UsageError(`--since must be a number of days such as 7d, or an ISO 8601 time, not "${text}"`)
}

type MovedRate = { prompt: { id: string; name: string }; rate_changed: RateChange | null }

type Report = { changes: ChangeImpact[]; moved: MovedRate[]; complete: boolean }

/** Reads the changes of a report, in the order of the service: worse ones first, those without signals last. */
export async function readReport(call: Call, query: ReportQuery): Promise<Report> {
  const moved = isOfOne(query) ? [] : await readMovedRates(call, query.prompt)
  // A change that is recorded meanwhile shifts the pages, so one may come twice.
  const found = new Map<number, ChangeImpact>()
  for (let page = 1; ; page += 1) {
    const answer = await call('GET', `/changes?${writeParams({ ...query, limit: maxPageSize, page })}`)
    for (const one of dataOf<ChangeImpact[]>(answer)) found.set(one.change.id, one)
    const { pagination, complete } = answer.body as { pagination: { total_pages: number }; complete: boolean }
    if (page >= pagination.total_pages) return { changes: [...found.values()], moved, complete }
  }
}

/** Reads the rates that changed, but not in git: of one prompt, or of those with the most signals. */
async function readMovedRates(call: Call, prompt: string | null): Promise<MovedRate[]> {
  const answer = await call('GET', `/impact?${writeParams({ search: prompt, sort: 'signals', limit: maxPageSize })}`)
  const isWanted = ({ id, name }: MovedRate['prompt']) => prompt === null || prompt === id || prompt === name
  return dataOf<MovedRate[]>(answer).filter((one) => one.rate_changed !== null && isWanted(one.prompt))
}

/** How a report is written. `plain` escapes a string of a client. */
type Style = {
  head(text: string): string
  item(sign: string, prompt: string, sentence: string, details: string[]): string
  note(text: string): string
  plain(text: string): string
  link(url: string, label: string): string
}

/** More changes are left out: a comment on GitHub has at most 65,536 characters. */
const maxShown = 100

/** Writes a report of changes since a day, or of all. Changes link to the console at `consoleUrl`, if that is known. */
export function writeReport(
  { changes, moved, complete }: Report,
  query: ReportQuery,
  style: Style,
  consoleUrl: string,
): string {
  const range = query.since ? ` since ${query.since.toISOString().slice(0, 10)}` : ''
  if (changes.length + moved.length === 0) return `No prompt changes${range}.\n`
  const told = changes.filter(({ signals }) => isOfOne(query) || signals.total > 0)
  const linkPrompt = (path: string) => (consoleUrl ? [style.link(`${consoleUrl}/prompts/${path}`, 'console')] : [])
  const items = told.slice(0, maxShown).map(({ prompt, sentence, change, verdict, signals }) => {
    const name = style.plain(nameChange(change))
    const details = [
      [change.title, nameAuthors(change)].flatMap((text) => (text ? style.plain(text) : [])).join(', by '),
      counted(signals.total, 'signal'),
      ...linkPrompt(`${prompt.id}?change=${change.id}`),
    ]
    // The sentence names the change once.
    const linked = change.pr_url
      ? style.plain(sentence).replace(name, () => style.link(change.pr_url as string, name))
      : style.plain(sentence)
    return style.item(verdict ? verdictSigns[verdict] : '·', style.plain(prompt.name), linked, details)
  })
  const movedItems = moved.flatMap(({ prompt, rate_changed: rate }) => {
    if (!rate) return []
    const sign = verdictSigns[rate.difference.value > 0 ? 'better' : 'worse']
    return style.item(sign, style.plain(prompt.name), describeRateChange(rate), [
      'no change went live on these days',
      ...linkPrompt(prompt.id),
    ])
  })
  const silent = changes.length - told.length
  const notes = [
    told.length > maxShown && `And ${told.length - maxShown} more.`,
    silent > 0 && `${counted(silent, 'change has', 'changes have')} no signals yet.`,
    !complete && `Only the newest ${changes.length} changes are compared.`,
  ]
  // The day would change a comment every day.
  const title =
    query.pr === null ? `Prompt changes${range}` : `This ${pullRequestWords(changes[0]?.change.pr_url).noun}`
  const head = style.head(`${title}: ${told.length > 0 ? countVerdicts(told) : 'none with signals'}`)
  const blocks = [head, [...items, ...movedItems].join('\n'), ...notes, style.note(comparisonKinds.beforeAfter)]
  return `${blocks.filter(Boolean).join('\n\n')}\n`
}

/** Such as: 1 worse, 2 better. */
function countVerdicts(changes: ChangeImpact[]): string {
  const counts = Map.groupBy(changes, ({ verdict }) => verdict ?? 'not compared')
  return [...counts].map(([verdict, { length }]) => `${length} ${verdict}`).join(', ')
}

const textStyle: Style = {
  head: (text) => text,
  item: (sign, prompt, sentence, details) => `${sign} ${prompt}: ${sentence}\n  ${details.join(' · ')}`,
  note: (text) => text,
  plain: oneLine,
  link: (_, label) => label,
}

export const markdownStyle: Style = {
  head: (text) => `**${text}**`,
  item: (sign, prompt, sentence, details) => `- ${sign} **${prompt}**: ${sentence}  \n  ${details.join(' · ')}`,
  note: (text) => `*${text}*`,
  plain: escapeMarkdown,
  link: (url, label) => `[${label}](<${url.replace(/[<>\\]/g, encodeURIComponent)}>)`,
}

/** The zero-width space keeps a title from notifying people on the host. A title could also begin like a heading or a list. */
function escapeMarkdown(text: string): string {
  return oneLine(text)
    .trim()
    .replaceAll('&', '&amp;')
    .replace(/[\\`*_[\]<>|~]|^[#+-]|(?<=^\d+)[.)]/g, '\\$&')
    .replaceAll('@', '@\u200b')
}
