// What events say: as data, which is sent as it is stored and complete without a call back, and as a message for a chat.
import type { HistoryEntry } from '../history/schema.ts'
import type { RateChange } from '../impact/rate_change.ts'
import type { Impact } from '../impact/schema.ts'
import { comparisonKinds, nameAuthors, nameChange, verdictSigns } from '../impact/sentence.ts'
import { monthOf } from '../lib/months.ts'
import { counted, number, oneLine } from '../lib/texts.ts'

export type Named = { id: string; name: string }

/** What each event says. The keys are the event types. */
export type EventData = {
  'change.live': { prompt: Named; change: HistoryEntry; sentence: string }
  'impact.decided': Impact & { prompt: Named; sentence: string }
  'rate.changed': RateChange & { prompt: Named; change: HistoryEntry; sentence: string }
  'usage.threshold': { organisation: Named; month: string; threshold: 80 | 100; used: number; limit: number }
  ping: Record<string, never>
}

export type EventType = keyof EventData

/** An event as it is sent. The id is the `webhook-id` of every attempt. */
export type WebhookEvent = { [T in EventType]: { id: string; type: T; timestamp: Date; data: EventData[T] } }[EventType]

/** Slack shows the blocks, Mattermost, Rocket.Chat and notifications the text. */
type Message = { text: string; blocks: object[] }

/** What a message says: the news, and below it in small print the details and links. */
type Parts = { news: string; details: string[] }

/** With these bounds, five characters for an escaped one included, no block reaches Slack's 3,000 characters. */
const [maxNameLength, maxUrlLength] = [200, 700]

/** Describes an event. Links lead to the console at `publicUrl`, if that is set. */
export function describeEvent(event: WebhookEvent, publicUrl: string): Message {
  const { news, details } = partsOf(event, publicUrl)
  const small = details.map((text) => ({ type: 'mrkdwn', text }))
  return {
    text: [news, details.join(' · ')].filter((line) => line !== '').join('\n'),
    blocks: [
      { type: 'section', text: { type: 'mrkdwn', text: news } },
      ...(small.length > 0 ? [{ type: 'context', elements: small }] : []),
    ],
  }
}

function partsOf(event: WebhookEvent, publicUrl: string): Parts {
  switch (event.type) {
    case 'change.live': {
      const { prompt, change } = event.data
      const title = change.title ? `: ${escapeText(change.title)}` : ''
      return {
        news: `*${escapeText(prompt.name)}*: ${linkChange(change)} went live${title}`,
        details: [
          `${escapeText(nameAuthors(change))} on ${escapeText(change.branch_name)}`,
          ...linkPrompt(event.data, publicUrl),
        ],
      }
    }
    case 'impact.decided': {
      const { prompt, change, verdict, sentence, signals } = event.data
      // The sentence names the change once.
      const news = escapeText(sentence).replace(escapeText(nameChange(change)), () => linkChange(change))
      return {
        news: `${verdictSigns[verdict ?? 'undecided']} *${escapeText(prompt.name)}*: ${news}`,
        details: [
          [change.title, nameAuthors(change)].flatMap((text) => (text ? escapeText(text) : [])).join(', by '),
          counted(signals.total, 'signal'),
          comparisonKinds.beforeAfter,
          ...linkPrompt(event.data, publicUrl),
        ],
      }
    }
    case 'rate.changed': {
      const { prompt, change, difference, sentence } = event.data
      const sign = verdictSigns[difference.value > 0 ? 'better' : 'worse']
      return {
        news: `${sign} *${escapeText(prompt.name)}*: ${escapeText(sentence)}`,
        details: [`${linkChange(change)} is still live`, ...linkPrompt(event.data, publicUrl)],
      }
    }
    case 'usage.threshold':
      return describeUsage(event.data, publicUrl)
    case 'ping':
      return { news: 'Test message from prompt-signals: this endpoint works.', details: [] }
  }
}

function describeUsage(
  { organisation, month, threshold, used, limit }: EventData['usage.threshold'],
  publicUrl: string,
) {
  const [spent, of] = [used, limit].map(number) as [string, string]
  const until = showDate(monthOf(new Date(`${month}-01`)).resetsAt)
  const name = `*${escapeText(organisation.name)}*`
  return {
    news:
      threshold === 100
        ? `${name} has used all ${of} of its signals for this month. New signals are rejected until ${until}.`
        : `${name} has used ${threshold} % of its signals for this month: ${spent} of ${of}. At ${of}, new signals are rejected until ${until}.`,
    details: publicUrl ? [link(`${publicUrl}/usage`, 'View usage')] : [],
  }
}

const showDate = (time: string): string =>
  new Date(time).toLocaleDateString('en-GB', { day: 'numeric', month: 'long', timeZone: 'UTC' })

/** The name of a change, which links to its pull request. */
function linkChange(change: HistoryEntry): string {
  const name = escapeText(nameChange(change))
  return change.pr_url ? link(change.pr_url, name) : name
}

const linkPrompt = ({ prompt, change }: Omit<EventData['change.live'], 'sentence'>, publicUrl: string): string[] =>
  publicUrl ? [link(`${publicUrl}/prompts/${prompt.id}?change=${change.id}`, 'View in console')] : []

/** Leaves out the link of an address that is too long. */
function link(url: string, label: string): string {
  const address = escapeControls(url.replaceAll('|', '%7C').replaceAll('>', '%3E').replaceAll('<', '%3C'))
  return address.length > maxUrlLength ? label : `<${address}|${label}>`
}

/**
 * A string of a client as one line of limited length. The zero-width spaces keep Mattermost and Rocket.Chat, which read
 * Markdown, from notifying somebody and from hiding an address behind a label.
 */
const escapeText = (text: string): string => {
  const line = oneLine(text)
  // Slack rejects a message with half of a surrogate pair.
  const short = line.length > maxNameLength ? `${line.slice(0, maxNameLength - 1).toWellFormed()}…` : line
  return escapeControls(short.replaceAll('@', '@\u200b').replaceAll('](', ']\u200b('))
}

/** Slack has three control characters. Escaped, no string can mention a channel or forge a link. */
const escapeControls = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
