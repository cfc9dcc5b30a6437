// <prompt-feedback prompt="pmt_…" key="psk_…" subject="…" reasons="Wrong,Too long" comment>: two buttons that record a vote.
import { createSignals, randomKey, type Value } from '../typescript/src/signals.ts'

/** Where this script came from is where signals go. */
const service = new URL('.', (document.currentScript as HTMLScriptElement).src).href

/** What the attribute `text-NAME` replaces. */
const texts = {
  label: 'Feedback',
  up: 'Good answer',
  down: 'Bad answer',
  reasons: 'Why?',
  comment: 'Comment',
  send: 'Send',
  thanks: 'Thank you.',
  withdrawn: 'Withdrawn.',
  failed: 'Not sent. Please try again.',
}

type TextName = keyof typeof texts

const style = new CSSStyleSheet()
style.replaceSync(`
  :host { display: inline-block; max-width: 100%; font: inherit }
  button, textarea { font: inherit; color: inherit; background: none; border: 1px solid; border-radius: .5em; padding: calc(.3em + 1px) calc(.7em + 1px) }
  svg { width: 1.25em; height: 1.25em; vertical-align: middle; fill: currentcolor }
  [value=negative] svg { transform: rotate(180deg) }
  [role=group], form { display: flex; flex-wrap: wrap; gap: .5em; align-items: center }
  [role=group] ~ * { margin-top: .5em }
  button { min-height: max(2em, 24px); cursor: pointer }
  [part~=up], [part~=down] { min-width: max(2.75em, 24px); min-height: max(2.75em, 24px); opacity: .75 }
  [part~=button]:hover, :focus-visible, [aria-pressed=true] { opacity: 1 }
  [aria-pressed=true] { background: color-mix(in srgb, currentcolor 15%, transparent); border-width: 2px; padding: .3em .7em }
  :focus-visible { outline: 2px solid; outline-offset: 2px }
  textarea { flex: 1; box-sizing: border-box }
  ::placeholder { color: inherit; opacity: .75 }
  [hidden] { display: none }
`)

/** Not by HTML text, which pages with Trusted Types reject. */
const create = <Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Record<string, string>,
  ...children: (Node | string)[]
): HTMLElementTagNameMap[Tag] => {
  const element = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value)
  element.append(...children)
  return element
}

/** A thumb, drawn: not every machine has a font with one. */
function thumb(): SVGElement {
  const [svg, path] = ['svg', 'path'].map((tag) => document.createElementNS('http://www.w3.org/2000/svg', tag))
  svg?.setAttribute('viewBox', '0 0 24 24')
  svg?.setAttribute('aria-hidden', 'true')
  path?.setAttribute('d', 'M3 11h4v9H3zm6 0 4-8q3 0 3 3.5V10h4q2 0 1.6 2l-1.4 6q-.4 2-2.2 2H9z')
  svg?.append(path as SVGElement)
  return svg as SVGElement
}

const thumbOf = (value: Value, part: string) =>
  create('button', { type: 'button', value, part: `button ${part}` }, thumb())

/** What a visitor says of an answer: without a value, nothing. */
type Vote = {
  value?: Value
  reasons: string[]
  comment: string
  send?(): Promise<unknown>
  report?(outcome: object): void
}

const noVote: Vote = { reasons: [], comment: '' }

class Answer {
  readonly subject: string
  /** What is shown, and sent as soon as the request before it has its answer. */
  wanted: Vote
  recorded: Vote
  isSending = false
  told: TextName | undefined
  /** A comment is asked for after a vote, and not again when the page is loaded again. */
  isOpen = false

  constructor(
    readonly id: string,
    /** A page that names no subject has a vote for each time that it is loaded. */
    readonly given: string | null,
  ) {
    this.subject = given || randomKey()
    this.wanted = this.recorded = this.#read()
  }

  #read(): Vote {
    try {
      const stored = { ...noVote, ...(this.given && JSON.parse(sessionStorage.getItem(this.id) ?? '{}')) }
      return { ...stored, reasons: [...stored.reasons] }
    } catch {
      // Storage is blocked, or holds something else.
      return noVote
    }
  }

  want(vote: Vote) {
    this.wanted = vote
    try {
      if (this.given) sessionStorage.setItem(this.id, JSON.stringify(vote))
    } catch {
      // Storage is blocked or full: the vote is not shown after a reload.
    }
  }
}

/** Those with a subject: its votes are sent in order, whichever element shows it. */
const answers = new Map<string, Answer>()

class PromptFeedback extends HTMLElement {
  static readonly #shown = new Set<PromptFeedback>()
  static readonly observedAttributes = [
    ...['prompt', 'subject', 'commit', 'metadata', 'reasons', 'positive-reasons', 'comment'],
    ...Object.keys(texts).map((name) => `text-${name}`),
  ]
  readonly #thumbs = [thumbOf('positive', 'up'), thumbOf('negative', 'down')]
  readonly #status = create('span', { role: 'status', part: 'status' })
  readonly #buttons = create('div', { role: 'group', part: 'buttons' }, ...this.#thumbs, this.#status)
  readonly #why = create('span', { id: 'why' })
  readonly #reasons = create('div', { role: 'group', part: 'reasons', 'aria-labelledby': 'why', hidden: '' })
  readonly #comment = create('textarea', { rows: '2', maxlength: '2000', part: 'comment' })
  readonly #send = create('button', { part: 'button send' })
  readonly #form = create('form', { part: 'form' }, this.#comment, this.#send)
  #answer!: Answer
  #offered: string[] = []

  constructor() {
    super()
    const root = this.attachShadow({ mode: 'open' })
    root.adoptedStyleSheets = [style]
    root.append(this.#buttons, this.#reasons, this.#form)
    for (const button of this.#thumbs) {
      // The second click of a double click would withdraw the vote.
      button.onclick = ({ detail }) => detail > 1 || this.#choose(button.value as Value)
    }
    this.#form.onsubmit = (event) => {
      event.preventDefault()
      const comment = this.#comment.value.trim()
      if (!comment) return this.#comment.focus()
      // What has the focus is about to be hidden.
      this.#thumbs.find(({ ariaPressed }) => ariaPressed === 'true')?.focus()
      this.#record({ ...this.#answer.wanted, comment })
    }
    this.#open()
  }

  connectedCallback() {
    PromptFeedback.#shown.add(this)
    this.#show()
  }

  disconnectedCallback() {
    PromptFeedback.#shown.delete(this)
  }

  attributeChangedCallback(_: string, before: string | null, now: string | null) {
    if (before !== now) this.#open()
  }

  /** A framework reuses the element for the next answer, which has its own vote. */
  #open() {
    const read = (name: string) => this.getAttribute(name)
    const subject = read('subject')
    const id = `prompt-feedback ${JSON.stringify([read('prompt'), subject || [read('commit'), read('metadata')]])}`
    if (id !== this.#answer?.id) {
      this.#answer = answers.get(id) ?? new Answer(id, subject)
      if (subject) answers.set(id, this.#answer)
      this.#comment.value = ''
    }
    this.#show()
  }

  #choose(value: Value) {
    const answer = this.#answer
    answer.isOpen = true
    this.#comment.value = ''
    this.#record(answer.wanted.value === value ? noVote : { ...noVote, value })
  }

  #record({ value, reasons, comment }: Vote, told?: TextName) {
    const read = (name: string) => this.getAttribute(name) ?? ''
    // React and Vue do not pass `key` on.
    const signals = createSignals({ url: service, key: read('browser-key') || read('key') })
    const [prompt, commit, given] = [read('prompt'), read('commit'), read('metadata') || '{}']
    const answer = this.#answer
    const { subject } = answer
    const send = async () => {
      if (!value) return void (await signals.withdraw(prompt, subject))
      const metadata = { ...JSON.parse(given), ...(reasons[0] && { reasons }), ...(comment && { comment }) }
      return signals.record(prompt, value, { subject, metadata, ...(commit && { commit }) })
    }
    // By the element that was clicked, although another one may send the vote.
    const report = (outcome: object) => {
      const detail = { value: value ?? null, subject, ...outcome }
      this.dispatchEvent(new CustomEvent('feedback', { bubbles: true, composed: true, detail }))
    }
    answer.want({ ...(value && { value }), reasons, comment, send, report })
    this.#tell(answer, told)
    this.#sendWanted(answer)
  }

  /** One request after the other: the last one counts. */
  async #sendWanted(answer: Answer) {
    if (answer.isSending) return
    answer.isSending = true
    let sent = answer.wanted
    const hurry = () => sent === answer.wanted || answer.wanted.send?.().catch(() => {})
    addEventListener('pagehide', hurry)
    while (answer.wanted !== answer.recorded) {
      sent = answer.wanted
      let outcome: object
      let told: TextName = sent.value ? 'thanks' : 'withdrawn'
      try {
        outcome = { signal: await sent.send?.() }
        answer.recorded = sent
      } catch (error) {
        outcome = { error }
        told = 'failed'
        if (answer.wanted === sent) answer.want(answer.recorded)
      }
      if (answer.wanted === answer.recorded) this.#tell(answer, told)
      sent.report?.(outcome)
    }
    removeEventListener('pagehide', hurry)
    answer.isSending = false
  }

  #tell(answer: Answer, told: TextName | undefined) {
    answer.told = told
    for (const one of PromptFeedback.#shown) one.#show()
  }

  #show() {
    const text = (name: TextName) => this.getAttribute(`text-${name}`) ?? texts[name]
    const { told, wanted } = this.#answer
    const { value, reasons, comment } = wanted
    for (const button of this.#thumbs) {
      button.ariaPressed = String(button.value === value)
      button.ariaLabel = text(button.value === 'positive' ? 'up' : 'down')
    }
    this.#buttons.ariaLabel = text('label')
    this.#status.textContent = told ? text(told) : ''
    this.#why.textContent = text('reasons')
    this.#comment.ariaLabel = this.#comment.placeholder = text('comment')
    this.#send.textContent = text('send')
    this.#form.hidden = !value || !this.#answer.isOpen || !this.hasAttribute('comment') || comment !== ''
    const list = value && this.getAttribute(value === 'positive' ? 'positive-reasons' : 'reasons')
    this.#offer((list ?? '').split(',').flatMap((one) => one.trim() || []))
    for (const chip of this.#reasons.querySelectorAll('button')) chip.ariaPressed = String(reasons.includes(chip.value))
  }

  #offer(offered: string[]) {
    // The one that was pressed keeps the focus.
    if (offered.join() === this.#offered.join()) return
    this.#offered = offered
    this.#reasons.hidden = offered.length === 0
    this.#reasons.replaceChildren(
      this.#why,
      ...offered.map((reason) => {
        const chip = create('button', { type: 'button', value: reason, part: 'button reason', dir: 'auto' }, reason)
        chip.onclick = () => {
          const { wanted, told } = this.#answer
          const isChosen = (one: string) => wanted.reasons.includes(one) !== (one === reason)
          // Without a gap, which could move the reasons below it.
          this.#record({ ...wanted, reasons: offered.filter(isChosen) }, told === 'thanks' ? told : undefined)
        }
        return chip
      }),
    )
  }
}

if (!customElements.get('prompt-feedback')) customElements.define('prompt-feedback', PromptFeedback)
