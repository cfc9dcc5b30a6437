import { systemClock } from '../src/clock.ts'
import type { Db } from '../src/db/client.ts'
import { createKey } from '../src/keys/manage.ts'
import { createOrganisation, type Owner, requireOrganisation } from '../src/orgs/manage.ts'
import { createPrompt } from '../src/prompts/manage.ts'
import type { Request } from './load.ts'

type Shape = { organisations: number; promptsEach: number; monthlyLimit: number }

/** Beyond any load, and within the column. */
export const unreachableLimit = 2_000_000_000

const body = JSON.stringify({ value: 'positive', metadata: { session: 'a81c', rating: 5 } })

/** Makes organisations with a key and prompts each; returns one request to record a signal for each prompt. */
export async function createTenants(db: Db, shape: Shape): Promise<Request[]> {
  const organisations: { owner: Owner; key: string }[] = []
  for (let index = 0; index < shape.organisations; index += 1) {
    const given = { name: `Org ${index}`, plan: 'free' as const, monthlyLimit: shape.monthlyLimit }
    const { id: org } = await createOrganisation(db, systemClock, given)
    const owner = await requireOrganisation(db, org)
    const { key } = await createKey(db, systemClock, owner, { name: 'load', expires_at: null })
    organisations.push({ owner, key })
  }
  // Prompt by prompt, so that consecutive requests are of different organisations.
  const requests: Request[] = []
  for (let index = 0; index < shape.organisations * shape.promptsEach; index += 1) {
    const { owner, key } = organisations[index % organisations.length] as (typeof organisations)[number]
    const { id } = await createPrompt(db, systemClock, owner, { name: `Prompt ${index}` })
    requests.push({ method: 'POST', path: `/api/v1/prompts/${id}/signals`, key, body })
  }
  return requests
}

export const promptOf = ({ path }: Request): string => path.split('/')[4] as string

/** The request for the newest page of the same prompt's history. */
export const toHistoryPage = ({ path, key }: Request): Request => ({
  method: 'GET',
  path: path.replace('/signals', '/history'),
  key,
  body: '',
})
