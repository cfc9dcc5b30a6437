import type { Sql } from '../db/client.ts'

export type PromptRow = { id: string; org: string; name: string }

export async function findPrompt(
  sql: Sql,
  publicId: string,
): Promise<{ id: number; organisationId: number } | undefined> {
  const [row] = await sql<{ id: number; organisationId: number }>`
    select id, organisation_id as "organisationId" from prompts where public_id = ${publicId}`
  return row
}

/** False when the public id is taken. */
export async function insertPrompt(
  sql: Sql,
  prompt: { id: string; organisationId: number; name: string; createdAt: Date },
): Promise<boolean> {
  const rows = await sql`
    insert into prompts (public_id, organisation_id, name, created_at)
    values (${prompt.id}, ${prompt.organisationId}, ${prompt.name}, ${prompt.createdAt})
    on conflict (public_id) do nothing
    returning 1`
  return rows.length > 0
}

export const selectPrompts = (sql: Sql, organisationId: number): Promise<PromptRow[]> =>
  sql<PromptRow>`
    select p.public_id as id, o.public_id as org, p.name
    from prompts p
    join organisations o on o.id = p.organisation_id
    where p.organisation_id = ${organisationId}
    order by p.id`
