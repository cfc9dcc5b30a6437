import type { Sql } from '../db/client.ts'

/** A prompt as requests need it. */
export type Prompt = { id: number; organisationId: number }

/** The file that a prompt is kept in: a repository's owner/name in lower case, and the path there. */
export type PromptFile = { repository: string; path: string }

export type PromptRow = { id: string; org: string; name: string } & (PromptFile | { repository: null; path: null })

export async function findPromptOf(sql: Sql, organisationId: number, publicId: string): Promise<Prompt | undefined> {
  const [row] = await sql<Prompt & { publicId: string }>`
    select id, organisation_id as "organisationId", public_id as "publicId"
    from find_prompts(array[${organisationId}::bigint], array[${publicId}::text])`
  // The result of another query must not be taken for this one's, since it is cached for good.
  if (row?.publicId !== publicId || row.organisationId !== organisationId) return undefined
  return { id: row.id, organisationId }
}

export async function findPromptOfAny(sql: Sql, publicId: string): Promise<Prompt | undefined> {
  const [row] = await sql<Prompt>`
    select id, organisation_id as "organisationId" from prompts where public_id = ${publicId}`
  return row
}

/** False when the public id or the file is taken. */
export async function insertPrompt(
  sql: Sql,
  prompt: { id: string; organisationId: number; name: string; file: PromptFile | null; createdAt: Date },
): Promise<boolean> {
  const { repository = null, path = null } = prompt.file ?? {}
  const rows = await sql`
    insert into prompts (public_id, organisation_id, name, repository, path, created_at)
    values (${prompt.id}, ${prompt.organisationId}, ${prompt.name}, ${repository}, ${path}, ${prompt.createdAt})
    on conflict do nothing
    returning 1`
  return rows.length > 0
}

/** The public id of the prompt that is kept in a file. */
export async function findPromptInFile(
  sql: Sql,
  organisationId: number,
  { repository, path }: PromptFile,
): Promise<string | undefined> {
  const [row] = await sql<{ id: string }>`
    select public_id as id from prompts
    where organisation_id = ${organisationId} and repository = ${repository} and path = ${path}`
  return row?.id
}

export async function updatePromptFile(sql: Sql, id: number, { repository, path }: PromptFile): Promise<PromptRow> {
  const [row] = await sql<PromptRow>`
    update prompts p
    set repository = ${repository}, path = ${path}
    from organisations o
    where p.id = ${id} and o.id = p.organisation_id
    returning p.public_id as id, o.public_id as org, p.name, p.repository, p.path`
  return row as PromptRow
}

export async function updateRepository(sql: Sql, organisationId: number, from: string, to: string): Promise<void> {
  await sql`
    update prompts p
    set repository = ${to}
    where p.organisation_id = ${organisationId} and p.repository = ${from}
      and not exists (
        select from prompts taken
        where taken.organisation_id = p.organisation_id and taken.repository = ${to} and taken.path = p.path
      )`
}

export const selectPromptsIn = (
  sql: Sql,
  organisationId: number,
  repository: string,
): Promise<{ id: number; path: string }[]> =>
  sql<{ id: number; path: string }>`
    select id, path from prompts
    where organisation_id = ${organisationId} and repository = ${repository}`

export const selectPrompts = (sql: Sql, organisationId: number): Promise<PromptRow[]> =>
  sql<PromptRow>`
    select p.public_id as id, o.public_id as org, p.name, p.repository, p.path
    from prompts p
    join organisations o on o.id = p.organisation_id
    where p.organisation_id = ${organisationId}
    order by p.id`
