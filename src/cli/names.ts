import type { Sql } from '../db/client.ts'
import { ServiceError } from '../errors.ts'
import { findOrganisationsNamed } from '../orgs/manage.ts'
import { findPromptsNamed } from '../prompts/find.ts'
import type { Arguments, NamedKind } from './command.ts'

const nouns = { ORG: 'organisation', PROMPT: 'prompt' }

/** Replaces the names of organisations and prompts by their ids. A prompt is looked for in the organisation of --org. */
export async function resolveNames(sql: Sql, given: Arguments): Promise<Arguments> {
  const args = await replaceNames(given, 'ORG', (name) => findOrganisationsNamed(sql, name))
  return replaceNames(args, 'PROMPT', (name) => findPromptsNamed(sql, name, args.text('org')))
}

async function replaceNames(
  args: Arguments,
  kind: NamedKind,
  find: (name: string) => Promise<string[]>,
): Promise<Arguments> {
  const ids = new Map<string, string>()
  args.withIds((name, itsKind) => {
    if (itsKind === kind) ids.set(name, name)
    return name
  })
  for (const name of ids.keys()) ids.set(name, requireOne(nouns[kind], name, await find(name)))
  return args.withIds((name, itsKind) => (itsKind === kind ? (ids.get(name) as string) : name))
}

function requireOne(noun: string, name: string, [id, ...others]: string[]): string {
  if (id === undefined) throw new ServiceError('not_found', `There is no ${noun} ${name}.`)
  if (others.length === 0) return id
  throw new ServiceError('validation_error', `Several ${noun}s are named ${name}: use an id, such as ${id}.`)
}
