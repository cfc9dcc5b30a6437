import type { Sql } from '../db/client.ts'
import type { PromptFilters, PromptRow } from './schema.ts'

export type OwnedPrompt = { id: number; organisationId: number }

export type Prompt = OwnedPrompt & { publicId: string }

/** The file that a prompt is kept in: a repository as parseRepository returns it, and the path there. */
export type PromptFile = { repository: string; path: string }

export type FileSeen = {
  promptId: number
  state: NonNullable<PromptRow['file_state']>
  movedTo: string | null
  at: Date
}

/** Finds prompts of any organisation; the caller compares the organisations. */
export const findPromptsByIds = (sql: Sql, publicIds: string[]) =>
  sql<Prompt & { org: string }>`
    select
      p.id, p.organisation_id as "organisationId", p.public_id as "publicId",
      (select o.public_id from organisations o where o.id = p.organisation_id) as org
    from prompts p
    where p.public_id = any (${`{${publicIds}}`}::text::text[])`

/** Finds up to two prompts of this organisation, or with null of any: two are ambiguous. */
export async function findPromptsNamed(sql: Sql, name: string, org: string | null): Promise<string[]> {
  const rows = await sql<{ id: string }>`
    select p.public_id as id
    from prompts p
    join organisations o on o.id = p.organisation_id
    where p.name = ${name} and (${org}::text is null or o.public_id = ${org}::text)
    order by p.id
    limit 2`
  return rows.map(({ id }) => id)
}

type InsertedPrompt = Pick<PromptRow, 'id' | 'name' | 'repository' | 'path' | 'live_branch' | 'created_at'>

/** False when the public id or the file is taken. */
export async function insertPrompt(sql: Sql, organisationId: number, row: InsertedPrompt): Promise<boolean> {
  const rows = await sql`
    insert into prompts (public_id, organisation_id, name, repository, path, live_branch, created_at)
    values (
      ${row.id}, ${organisationId}, ${row.name}, ${row.repository}, ${row.path}, ${row.live_branch}, ${row.created_at}
    )
    on conflict do nothing
    returning 1`
  return rows.length > 0
}

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

/** Returns false when there is no such prompt. */
export async function lockPrompt(sql: Sql, { id, organisationId, publicId }: Prompt): Promise<boolean> {
  const rows = await sql`
    select from prompts
    where id = ${id} and organisation_id = ${organisationId} and public_id = ${publicId}
    for update`
  return rows.length > 0
}

export async function deletePrompt(sql: Sql, { id, organisationId }: OwnedPrompt): Promise<void> {
  await sql`delete from prompts where organisation_id = ${organisationId} and id = ${id}`
}

export async function insertErasedFile(sql: Sql, { id, organisationId }: OwnedPrompt): Promise<void> {
  await sql`
    insert into erased_files (organisation_id, repository, path)
    select organisation_id, repository, path from prompts
    where organisation_id = ${organisationId} and id = ${id} and path is not null
    on conflict do nothing`
}

export const selectErasedFiles = (sql: Sql, organisationId: number, beforeId: number, limit: number) =>
  sql<PromptFile & { rowId: number }>`
    select id as "rowId", repository, path from erased_files
    where organisation_id = ${organisationId} and id < ${beforeId}
    order by id desc
    limit ${limit}`

export const selectPromptRows = (sql: Sql, organisationId: number, ids: number[]) =>
  sql<PromptRow & { rowId: number }>`
    select p.id as "rowId", p.public_id as id, o.public_id as org, p.name, p.repository, p.path, p.file_state,
      p.file_moved_to, p.archived, p.live_branch,
      (
        select max(h.created_at) from history_entries h
        where h.organisation_id = p.organisation_id and h.prompt_id = p.id
      ) as last_entry_at, p.created_at
    from prompts p join organisations o on o.id = p.organisation_id
    where p.organisation_id = ${organisationId} and p.id = any(${ids.map(String)}::text[]::bigint[])`

export async function updatePrompt(
  sql: Sql,
  { id, organisationId }: OwnedPrompt,
  row: Omit<PromptRow, 'id' | 'created_at' | 'last_entry_at'>,
): Promise<void> {
  await sql`
    update prompts
    set
      name = ${row.name}, repository = ${row.repository}, path = ${row.path}, file_state = ${row.file_state},
      archived = ${row.archived}, file_moved_to = ${row.file_moved_to}, live_branch = ${row.live_branch},
      file_seen_at = case when ${row.file_state}::text is not null then file_seen_at end
    where organisation_id = ${organisationId} and id = ${id}`
}

/**
 * Ignores a sighting older than the stored one. The caller has locked the prompts. Setting a column of a key would need a
 * stronger lock, and could deadlock with an event of GitHub whose foreign keys lock the same prompts.
 */
export async function markFilesSeen(sql: Sql, organisationId: number, seen: FileSeen[]): Promise<void> {
  if (seen.length === 0) return
  const oldestFirst = seen.toSorted((a, b) => a.at.getTime() - b.at.getTime())
  const latest = [...new Map(oldestFirst.map((file) => [file.promptId, file])).values()]
  await sql`
    update prompts p
    set file_state = s.file_state, file_moved_to = s.file_moved_to, file_seen_at = s.file_seen_at
    from unnest(
      ${latest.map(({ promptId }) => String(promptId))}::text[]::bigint[], ${latest.map(({ state }) => state)}::text[],
      ${latest.map(({ movedTo }) => movedTo)}::text[], ${latest.map(({ at }) => at.toISOString())}::text[]::timestamptz[]
    ) s (id, file_state, file_moved_to, file_seen_at)
    where p.organisation_id = ${organisationId} and p.id = s.id
      and (p.file_seen_at is null or p.file_seen_at <= s.file_seen_at)`
}

/** Also moves the files of erased prompts. */
export const updateRepository = (sql: Sql, organisationId: number, from: string, to: string) =>
  sql<{ id: string; path: string }>`
    with erased as (
      delete from erased_files where organisation_id = ${organisationId} and repository = ${from} returning path
    ), moved as (
      insert into erased_files (organisation_id, repository, path)
      select ${organisationId}, ${to}, path from erased
      on conflict do nothing
    )
    update prompts p
    set repository = ${to}
    where p.organisation_id = ${organisationId} and p.id = any(array(
        select id from prompts where organisation_id = ${organisationId} and repository = ${from} order by id for update
      ))
      and not exists (
        select from prompts taken
        where taken.organisation_id = ${organisationId} and taken.repository = ${to} and taken.path = p.path
      )
    returning p.public_id as id, p.path`

export const selectRepositories = (sql: Sql, organisationId: number) =>
  sql<{ repository: string; prompts: number }>`
    select repository, count(*) as prompts
    from prompts
    where organisation_id = ${organisationId} and repository is not null
    group by repository
    order by prompts desc, repository
    limit 100`

export type LinkedPrompt = { id: number; path: string }

export const findLinkedPrompts = (sql: Sql, organisationId: number, repository: string) =>
  sql<LinkedPrompt>`
    select id, path from prompts
    where organisation_id = ${organisationId} and repository = ${repository}`

export const selectPromptIds = (sql: Sql, organisationId: number, afterId: number, limit: number) =>
  sql<Prompt>`
    select id, organisation_id as "organisationId", public_id as "publicId"
    from prompts
    where organisation_id = ${organisationId} and id > ${String(afterId)}::text::bigint
    order by organisation_id, id
    limit ${limit}`

/** The newest prompts before this id. A search is in their name, public id or path. */
export const selectPrompts = (
  sql: Sql,
  organisationId: number,
  { search, archived }: PromptFilters,
  beforeId: number,
  limit: number,
) =>
  sql<PromptRow & { rowId: number }>`
    select p.id as "rowId", p.public_id as id, o.public_id as org, p.name, p.repository, p.path, p.file_state,
      p.file_moved_to, p.archived, p.live_branch,
      (
        select max(h.created_at) from history_entries h
        where h.organisation_id = p.organisation_id and h.prompt_id = p.id
      ) as last_entry_at, p.created_at
    from prompts p join organisations o on o.id = p.organisation_id
    where p.organisation_id = ${organisationId} and p.id < ${beforeId}
      and (${archived}::text = 'all' or p.archived::text = ${archived}::text)
      and (
        ${search}::text is null
        or strpos(lower(concat_ws(chr(10), p.name, p.public_id, p.path)), lower(${search}::text)) > 0
      )
    order by p.id desc
    limit ${limit}`
