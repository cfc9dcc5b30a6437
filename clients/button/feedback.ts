// <prompt-feedback prompt="pmt_…" key="psk_…" commit="…" comment>: two buttons that record a signal.
import { createSignals, type Value } from '../typescript/src/signals.ts'

/** Where this script came from is where signals go. */
const service = new URL('.', (document.currentScript as HTMLScriptElement).src).href

const style = new CSSStyleSheet()
style.replaceSync(`
  :host { display: inline-block; font: inherit; color-scheme: light dark }
  button, textarea { font: inherit; color: inherit; background: none; border: 1px solid currentcolor; border-radius: .5em; padding: .4em .7em }
  svg { width: 1.25em; height: 1.25em; vertical-align: middle; fill: currentcolor }
  [value=negative] svg { transform: rotate(180deg) }
  [role=group] { display: flex; gap: .5em; align-items: center }
  button { min-width: 2.75em; min-height: 2.75em; cursor: pointer; opacity: .75 }
  button:hover, button:focus-visible, [aria-pressed=true] { opacity: 1 }
  [aria-pressed=true] { background: color-mix(in srgb, currentcolor 15%, transparent); border-width: 2px }
  :focus-visible { outline: 2px solid; outline-offset: 2px }
  form { display: flex; gap: .5em; margin-top: .5em; align-items: end }
  [hidden] { display: none }
  textarea { flex: 1; box-sizing: border-box }
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

const vote = (value: Value, part: string, label: string) =>
  create(
    'button',
    { type: 'button', value, part: `button ${part}`, 'aria-pressed': 'false', 'aria-label': label },
    thumb(),
  )

/** A click, and the answer that it was about. */
type Choice = Record<'prompt' | 'key' | 'metadata', string> & { value: Value; commit: string | null }

class PromptFeedback extends HTMLElement {
  static readonly observedAttributes = ['prompt', 'commit', 'metadata']
  readonly #votes = [vote('positive', 'up', 'Good answer'), vote('negative', 'down', 'Bad answer')]
  readonly #status = create('span', { role: 'status', part: 'status' })
  readonly #comment = create('textarea', { rows: '2', maxlength: '2000', part: 'comment', 'aria-label': 'Comment' })
  readonly #form = create(
    'form',
    { part: 'form', hidden: '' },
    this.#comment,
    create('button', { part: 'button send' }, 'Send'),
  )
  #sent: Choice | undefined
  /** What was chosen, and not yet sent because a comment may follow. */
  #pending: Choice | undefined
  readonly #sendPending = () => this.#pending && this.#send(this.#pending)

  constructor() {
    super()
    const root = this.attachShadow({ mode: 'open' })
    root.adoptedStyleSheets = [style]
    const group = { role: 'group', 'aria-label': 'Feedback', part: 'buttons' }
    root.append(create('div', group, ...this.#votes, this.#status), this.#form)
    for (const button of this.#votes) button.onclick = () => this.#choose(button.value as Value)
    this.#form.onsubmit = (event) => {
      event.preventDefault()
      this.#sendPending()
    }
  }

  /** A choice counts even if the page is left without a comment. */
  connectedCallback() {
    addEventListener('pagehide', this.#sendPending)
  }

  disconnectedCallback() {
    removeEventListener('pagehide', this.#sendPending)
    // An element that is only moved is connected again before the script ends.
    queueMicrotask(() => this.isConnected || this.#sendPending())
  }

  /** A framework reuses the element for the next answer, which has its own vote. */
  attributeChangedCallback(_: string, before: string | null, now: string | null) {
    if (before === now) return
    this.#sendPending()
    this.#sent = undefined
    this.#comment.value = ''
    this.#show(undefined, '')
  }

  #choose(value: Value) {
    const isSent = value === this.#sent?.value
    if (isSent && !this.#pending) return
    this.#show(value, '')
    const read = (name: string) => this.getAttribute(name)
    // React and Vue do not pass `key` on.
    const key = read('browser-key') ?? read('key') ?? ''
    const choice = {
      value,
      key,
      prompt: read('prompt') ?? '',
      commit: read('commit'),
      metadata: read('metadata') ?? '{}',
    }
    if (!isSent && !this.hasAttribute('comment')) {
      this.#send(choice)
      return
    }
    // Back to what was sent, the other choice is dropped.
    this.#pending = isSent ? undefined : choice
    this.#form.hidden = isSent
    if (!isSent) this.#comment.focus()
  }

  async #send(choice: Choice) {
    const { value, key, prompt, commit } = choice
    this.#pending = undefined
    this.#sent = choice
    this.#form.hidden = true
    const comment = this.#comment.value.trim()
    // It belongs to this choice, and not to another one that follows.
    this.#comment.value = ''
    try {
      const metadata = { ...JSON.parse(choice.metadata), ...(comment && { comment }) }
      const signals = createSignals({ url: service, key })
      const signal = await signals.record(prompt, value, { metadata, ...(commit && { commit }) })
      this.#end(choice, choice, 'Thank you.', { signal })
    } catch (error) {
      if (this.#sent === choice && !this.#pending) this.#comment.value = comment
      this.#end(choice, undefined, 'Not sent. Please try again.', { error })
    }
  }

  #show(value: Value | undefined, text: string) {
    for (const button of this.#votes) button.ariaPressed = String(button.value === value)
    this.#status.textContent = text
  }

  /** Shows `sent`, unless there is another choice or another answer meanwhile, and tells the page. */
  #end(choice: Choice, sent: Choice | undefined, text: string, outcome: object) {
    if (this.#sent === choice) {
      this.#sent = sent
      if (!this.#pending) this.#show(sent?.value, text)
    }
    const detail = { value: choice.value, ...outcome }
    this.dispatchEvent(new CustomEvent('feedback', { bubbles: true, composed: true, detail }))
  }
}

if (!customElements.get('prompt-feedback')) customElements.define('prompt-feedback', PromptFeedback)
