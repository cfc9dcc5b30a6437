import { counted, oneLine } from '../lib/texts.ts'
import type { ReportedChange } from './report.ts'
import { comparisonKinds, describeChange, nameChange } from './sentence.ts'

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

const signs = { better: '▲', worse: '▼', same: '=', undecided: '?' }

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
    return style.item(verdict ? signs[verdict] : '·', style.plain(prompt.name), linked, details)
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

/** Without the zero-width space, a title could notify somebody on the host. Its first characters could begin a heading or list. */
function escapeMarkdown(text: string): string {
  return oneLine(text)
    .trim()
    .replaceAll('&', '&amp;')
    .replace(/[\\`*_[\]<>|~]|^[#+-]|(?<=^\d+)[.)]/g, '\\$&')
    .replaceAll('@', '@\u200b')
}
