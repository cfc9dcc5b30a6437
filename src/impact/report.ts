import { commitKey, isSameCommit } from '../history/identity.ts'
import { maxPageSize } from '../lib/params.ts'
import { counted, oneLine } from '../lib/texts.ts'
import type { ImpactSource, PromptName } from './command_source.ts'
import type { Impact } from './schema.ts'
import { comparisonKinds, describeChange, nameChange, verdictSigns } from './sentence.ts'

export type ReportedChange = Impact & { prompt: PromptName }

/** Which changes a report shows: those that went live from `since` on, of one prompt, pull request or commit, or of all. */
export type ReportQuery = {
  since: Date
  prompt: string | null
  /** The number of a pull request, or its address. */
  pullRequest: string | null
  /** A commit in lower case, or its first characters. */
  commit: string | null
}

/** Reads the changes of a report, worse ones first. Those with the same verdict come newest first. */
export async function readReport(source: ImpactSource, query: ReportQuery): Promise<ReportedChange[]> {
  // Lists all of them first: a prompt that changes moves before the pages that are still to come.
  const prompts = query.prompt === null ? await listChanged(source, query.since) : [query.prompt]
  // A change that is recorded meanwhile shifts the pages, so one may come twice.
  const found = new Map<number, ReportedChange>()
  for (const prompt of prompts) {
    for (const one of await readChanges(source, prompt, query.since)) found.set(one.change.id, one)
  }
  return [...found.values()].filter((change) => isWanted(change, query)).sort(compare)
}

/** The prompts with a change since then. */
async function listChanged(source: ImpactSource, since: Date): Promise<string[]> {
  const ids: string[] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const query = new URLSearchParams({ sort: 'last_change', limit: `${maxPageSize}`, ...(cursor ? { cursor } : {}) })
    const page: Awaited<ReturnType<ImpactSource['listPrompts']>> = await source.listPrompts(query)
    for (const { prompt, latest } of page.data) {
      if (!latest || new Date(latest.change.created_at) < since) return ids
      ids.push(prompt.id)
    }
    cursor = page.nextCursor
  }
  return ids
}

async function readChanges(source: ImpactSource, id: string, since: Date): Promise<ReportedChange[]> {
  const found: ReportedChange[] = []
  for (let page = 1; ; page += 1) {
    const query = new URLSearchParams({ since: since.toISOString(), limit: `${maxPageSize}`, page: `${page}` })
    const { prompt, totalCount, data } = await source.readImpact(id, query)
    found.push(...data.map((impact) => ({ prompt: { id: prompt.id, name: prompt.name }, ...impact })))
    if (page * maxPageSize >= totalCount) return found
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

/** Writes a report of changes since a day. Changes link to the console at `consoleUrl`, if that is known. */
export function writeReport(changes: ReportedChange[], since: Date, style: Style, consoleUrl: string): string {
  const day = since.toISOString().slice(0, 10)
  if (changes.length === 0) return `No prompt changes since ${day}.\n`
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
  const head = style.head(`Prompt changes since ${day}: ${countVerdicts(changes)}`)
  return `${[head, items.join('\n'), ...more, style.note(comparisonKinds.beforeAfter)].join('\n\n')}\n`
}

/** Such as: 1 worse, 2 better. */
function countVerdicts(changes: ReportedChange[]): string {
  const counts = Map.groupBy(changes, ({ verdict }) => verdict ?? 'not compared')
  return [...counts].map(([verdict, { length }]) => `${length} ${verdict}`).join(', ')
}

export const textStyle: Style = {
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
