import type { Sql } from '../db/client.ts'
import { ServiceError } from '../errors.ts'
import { findOrganisationsNamed } from '../orgs/manage.ts'
import { findPromptsNamed } from '../prompts/find.ts'
import type { Arguments } from './command.ts'

/** Replaces the names of organisations and prompts by their ids. A prompt is looked for in the organisation of --org. */
export async function resolveNames(sql: Sql, given: Arguments): Promise<Arguments> {
  const args = await given.withIds('ORG', async (name) =>
    requireOne('organisation', 'orgs list', name, await findOrganisationsNamed(sql, name)),
  )
  return args.withIds('PROMPT', async (name) =>
    requireOne('prompt', 'prompts list --org ORG', name, await findPromptsNamed(sql, name, args.text('org'))),
  )
}

function requireOne(noun: string, command: string, name: string, [id, ...others]: string[]): string {
  if (id === undefined) {
    throw new ServiceError('not_found', `There is no ${noun} ${name}. "prompt-signals ${command}" lists them.`)
  }
  if (others.length === 0) return id
  throw new ServiceError('validation_error', `Several ${noun}s are named ${name}: use an id, such as ${id}.`)
}
