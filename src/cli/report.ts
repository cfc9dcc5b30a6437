import { commitKey, isSameCommit } from '../history/identity.ts'
import type { Impact } from '../impact/schema.ts'
import { comparisonKinds, describeChange, nameChange, verdictSigns } from '../impact/sentence.ts'
import { maxPageSize } from '../lib/params.ts'
import { counted, oneLine } from '../lib/texts.ts'
import { dayMs, parseTime } from '../lib/times.ts'
import { checkService, withApi } from './api.ts'
import { type Arguments, type Command, type Context, UsageError } from './command.ts'
import { type Call, dataOf, readRows } from './rest.ts'

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
  const changes = await readReport(call, query)
  const format = args.options.json ? 'json' : args.text('format')
  if (format === 'json') {
    const lines = changes.map((change) => `${JSON.stringify({ ...change, sentence: describeChange(change) })}\n`)
    return output.text(lines.join(''))
  }
  const consoleUrl = args.text('url')?.replace(/\/+$/, '') ?? config.PUBLIC_URL ?? ''
  const style = format === 'markdown' ? markdownStyle : textStyle
  output.text(writeReport(changes, query.since, style, format === 'markdown' ? consoleUrl : ''))
}

/** How far back a report looks; all the way for a pull request or a commit, which is only one. */
const defaultDays = 7

function reportQuery(args: Arguments, now: Date): ReportQuery {
  const [pullRequest, commit] = [args.text('pr'), args.text('commit')]
  if (pullRequest !== null && commit !== null) throw new UsageError('give either --pr or --commit')
  if (pullRequest !== null && !/^([1-9]\d{0,9}|https?:\/\/\S+)$/.test(pullRequest)) {
    throw new UsageError(`--pr must be the number or the address of a pull request, not "${pullRequest}"`)
  }
  if (commit !== null && !/^[\x21-\x7e]{7,100}$/.test(commit)) {
    throw new UsageError(`--commit must be a hash, or at least its first 7 characters, not "${commit}"`)
  }
  const isOfOne = pullRequest !== null || commit !== null
  const since = isOfOne && args.text('since') === null ? null : parseSince(args.text('since') ?? `${defaultDays}d`, now)
  return { since, prompt: args.text('prompt'), pullRequest, commit: commit?.toLowerCase() ?? null }
}

function parseSince(text: string, now: Date): Date {
  const given = /^(\d{1,5})d$/.exec(text)
  const since = given ? new Date(now.getTime() - Number(given[1]) * dayMs) : parseTime(text)
  if (since) return since
  throw new UsageError(`--since must be a number of days such as 7d, or an ISO 8601 time, not "${text}"`)
}

type PromptName = { id: string; name: string }

export type ReportedChange = Impact & { prompt: PromptName }

/** Which changes a report shows: those that went live from `since` on, of one prompt, pull request or commit, or of all. */
type ReportQuery = {
  /** Null: since the beginning. */
  since: Date | null
  prompt: string | null
  /** The number of a pull request, or its address. */
  pullRequest: string | null
  /** A commit in lower case, or its first characters. */
  commit: string | null
}

/** Reads the changes of a report, worse ones first. Those with the same verdict come newest first. */
export async function readReport(call: Call, query: ReportQuery): Promise<ReportedChange[]> {
  const since = query.since ?? new Date(0)
  // Lists all of them first: a prompt that changes moves before the pages that are still to come.
  const prompts = query.prompt === null ? await listChanged(call, since) : [query.prompt]
  // A change that is recorded meanwhile shifts the pages, so one may come twice.
  const found = new Map<number, ReportedChange>()
  for (const prompt of prompts) {
    for (const one of await readChanges(call, prompt, since)) found.set(one.change.id, one)
  }
  return [...found.values()].filter((change) => isWanted(change, query)).sort(compare)
}

/** The prompts with a change since then. */
async function listChanged(call: Call, since: Date): Promise<string[]> {
  const ids: string[] = []
  const prompts = readRows<{ prompt: PromptName; latest: Impact | null }>(call, '/impact', { sort: 'last_change' })
  for await (const { prompt, latest } of prompts) {
    if (!latest || new Date(latest.change.created_at) < since) break
    ids.push(prompt.id)
  }
  return ids
}

async function readChanges(call: Call, id: string, since: Date): Promise<ReportedChange[]> {
  const found: ReportedChange[] = []
  for (let page = 1; ; page += 1) {
    const query = new URLSearchParams({ since: since.toISOString(), limit: `${maxPageSize}`, page: `${page}` })
    const answer = await call('GET', `/prompts/${id}/impact?${query}`)
    const impacts = dataOf<Impact[]>(answer)
    const { prompt, pagination } = answer.body as { prompt: PromptName; pagination: { total_pages: number } }
    found.push(...impacts.map((impact) => ({ prompt: { id: prompt.id, name: prompt.name }, ...impact })))
    if (page >= pagination.total_pages) return found
  }
}

function isWanted({ change }: Impact, { pullRequest, commit }: ReportQuery): boolean {
  const isOfPullRequest = [`${change.pr_number}`, change.pr_url].includes(pullRequest)
  const isOfCommit = commit !== null && isSameCommit(commitKey(change.commit_sha), commit)
  return (pullRequest === null || isOfPullRequest) && (commit === null || isOfCommit)
}

const order = ['worse', 'better', 'same', 'undecided', null]

const compare = (a: Impact, b: Impact): number =>
  order.indexOf(a.verdict) - order.indexOf(b.verdict) ||
  Date.parse(b.change.created_at) - Date.parse(a.change.created_at)

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
export function writeReport(changes: ReportedChange[], since: Date | null, style: Style, consoleUrl: string): string {
  const range = since ? ` since ${since.toISOString().slice(0, 10)}` : ''
  if (changes.length === 0) return `No prompt changes${range}.\n`
  const items = changes.slice(0, maxShown).map(({ prompt, ...impact }) => {
    const { change, verdict, signals } = impact
    const name = style.plain(nameChange(change))
    const sentence = style.plain(describeChange(impact))
    const details = [
      [change.title, change.user.name].flatMap((text) => (text ? style.plain(text) : [])).join(', by '),
      counted(signals.total, 'signal'),
      ...(consoleUrl ? [style.link(`${consoleUrl}/prompts/${prompt.id}?change=${change.id}`, 'console')] : []),
    ]
    // The sentence names the change once.
    const linked = change.pr_url ? sentence.replace(name, () => style.link(change.pr_url as string, name)) : sentence
    return style.item(verdict ? verdictSigns[verdict] : '·', style.plain(prompt.name), linked, details)
  })
  const more = changes.length > maxShown ? [`And ${changes.length - maxShown} more.`] : []
  const head = style.head(`Prompt changes${range}: ${countVerdicts(changes)}`)
  return `${[head, items.join('\n'), ...more, style.note(comparisonKinds.beforeAfter)].join('\n\n')}\n`
}

/** Such as: 1 worse, 2 better. */
function countVerdicts(changes: ReportedChange[]): string {
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
