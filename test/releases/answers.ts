// What a service answers to every request that only reads.
import type { OpenAPIV3 } from 'openapi-types'
import { sha } from '../github/payloads.ts'
import type { TestService } from '../service.ts'

export type Answers = Record<string, unknown>

/** What a request of this kind cannot be without. */
const queries: Record<string, string> = {
  '/history': '?include=title',
  '/compare': `?base=${sha('before')}&head=${sha('after')}`,
}

/** By path. Of what was used last, the time differs with every answer. */
export async function readAnswers(service: TestService, key: string, prompts: string[]): Promise<Answers> {
  const { paths } = (await (await fetch(`${service.url}/docs/json`)).json()) as OpenAPIV3.Document
  const templates = Object.keys(paths).filter((path) => paths[path]?.get)
  const answers: Answers = {}
  for (const path of templates.flatMap((path) => prompts.map((prompt) => path.replace('{prompt_id}', prompt)))) {
    const url = `${await fillIds(path)}${Object.entries(queries).find(([end]) => path.endsWith(end))?.[1] ?? ''}`
    if (answers[url]) continue
    const { status, body, text } = await service.call('GET', url, { key })
    if (status !== 200) throw new Error(`${url}: ${status} ${text}`)
    answers[url] = JSON.parse(JSON.stringify(body ?? text), (name, value) =>
      name === 'last_used_at' ? undefined : value,
    )
  }
  return answers

  /** Puts the first one of its list in the place of each id. */
  async function fillIds(path: string): Promise<string> {
    const [start, end] = path.split(/\{\w+\}/)
    if (end === undefined) return path
    const { body } = await service.call('GET', start?.replace(/\/$/, '') as string, { key })
    return `${start}${body.data[0].id ?? body.data[0].change.id}${end}`
  }
}
