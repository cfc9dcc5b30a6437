import type { Sql } from '../db/client.ts'
import type { OwnedPrompt } from '../prompts/find.ts'
import type { EntryRow } from './schema.ts'

/** The text that a commit left in the file of a prompt, by its SHA-256 in hexadecimal; null if it left none. */
export type TextRef = { prompt_id: number; branch_name: string; commit_sha: string; text_hash: string | null }

export async function mayStoreTexts(sql: Sql, organisationId: number): Promise<boolean> {
  const [row] = await sql<{ store_text: boolean }>`select store_text from organisations where id = ${organisationId}`
  return row?.store_text ?? false
}

/** Lets the setting change, and what is stored be erased, only after the caller's transaction. */
export async function lockStoring(sql: Sql, organisationId: number): Promise<void> {
  await sql`select from organisations where id = ${organisationId} for share`
}

/** Stores texts. Locks those that are stored already, so that none is deleted as unused before entries have it. */
export async function insertTexts(sql: Sql, organisationId: number, texts: Map<string, string>): Promise<void> {
  await sql`
    insert into prompt_texts as t (organisation_id, hash, text)
    select ${organisationId}, decode(g.hash, 'hex'), g.text
    from unnest(${[...texts.keys()]}::text[], ${[...texts.values()]}::text[]) g (hash, text)
    order by g.hash
    -- Setting a column of the key would also block linkTexts, and two batches could deadlock.
    on conflict (organisation_id, hash) do update set text = t.text`
}

/** Selects the hashes whose texts are stored. */
export async function selectStoredTexts(sql: Sql, organisationId: number, hashes: string[]): Promise<Set<string>> {
  const rows = await sql<{ hash: string }>`
    select encode(t.hash, 'hex') as hash
    from unnest(${hashes}::text[]) g (hash)
    join prompt_texts t on t.organisation_id = ${organisationId} and t.hash = decode(g.hash, 'hex')`
  return new Set(rows.map(({ hash }) => hash))
}

/**
 * Gives entries their texts if these are stored, and returns the hashes of the others. Locks the texts, so that none is
 * deleted as unused meanwhile: most were sent with an earlier batch. The text of a commit that a merge brought is also that
 * of the merge, unless a later one of the refs has another or none.
 */
export async function linkTexts(sql: Sql, organisationId: number, refs: TextRef[]): Promise<string[]> {
  const given = JSON.stringify(refs)
  const missing = await sql<{ hash: string }>`
    with named as materialized (
      select g.prompt_id, g.text_hash, g.place, c.commit_sha
      from rows from (
        json_to_recordset(${given}::text::json) as (prompt_id bigint, branch_name text, commit_sha text, text_hash text)
      ) with ordinality g (prompt_id, branch_name, commit_sha, text_hash, place)
      left join lateral (
        select * from merged_commits m
        where m.organisation_id = ${organisationId} and m.prompt_id = g.prompt_id and m.branch_name = g.branch_name
          and m.commit_sha = lower(g.commit_sha collate "C")
        offset 0
      ) m on true
      cross join lateral (values (lower(g.commit_sha collate "C")), (m.merge_sha)) c (commit_sha)
    ), last as materialized (
      select distinct on (h.id) h.id, g.text_hash
      from named g
      cross join lateral (
        select * from history_entries h
        where h.organisation_id = ${organisationId} and h.prompt_id = g.prompt_id and lower(h.commit_sha) = g.commit_sha
        offset 0
      ) h
      where h.action in ('deployed', 'pr_merged')
      order by h.id, g.place desc
    ), given as materialized (
      select l.id, l.text_hash, decode(l.text_hash, 'hex') as hash from last l where l.text_hash is not null
    ), stored as materialized (
      select t.hash
      from prompt_texts t
      where t.organisation_id = ${organisationId} and t.hash = any (array(select g.hash from given g))
      for key share
    ), linked as (
      update history_entries h
      set text_hash = g.hash
      from given g
      join stored t on t.hash = g.hash
      where h.organisation_id = ${organisationId} and h.id = g.id and h.text_hash is distinct from g.hash
    )
    select distinct g.text_hash as hash
    from given g
    where not exists (select from stored t where t.hash = g.hash)`
  return missing.map(({ hash }) => hash)
}

/** An entry, its text, and the id of the change before it. */
type EntryWithText = EntryRow & { text: string | null; before_id: number | null }

export async function selectEntryWithText(
  sql: Sql,
  prompt: OwnedPrompt,
  id: number,
): Promise<EntryWithText | undefined> {
  const [row] = await sql<EntryWithText>`
    select
      h.id, h.action, h.user_name, h.user_email, h.commit_sha, h.branch_name, h.pr_number, h.pr_url, h.created_at, h.title,
      (select t.text from prompt_texts t where t.organisation_id = h.organisation_id and t.hash = h.text_hash) as text,
      (
        select b.id
        from history_changes b
        where b.organisation_id = h.organisation_id and b.prompt_id = h.prompt_id and (b.created_at, b.id) < (h.created_at, h.id)
        order by b.created_at desc, b.id desc
        limit 1
      ) as before_id
    from history_entries h
    where h.organisation_id = ${prompt.organisationId} and h.prompt_id = ${prompt.id} and h.id = ${id}`
  return row
}

/** Removes the texts from up to `limit` entries of a prompt, or with null of the organisation. Returns their number. */
export async function unlinkTexts(sql: Sql, organisationId: number, promptId: number | null, limit: number) {
  const rows = await sql`
    update history_entries
    set text_hash = null
    where organisation_id = ${organisationId} and id = any(array(
      select id from history_entries
      where organisation_id = ${organisationId} and text_hash is not null
        and (${promptId}::bigint is null or prompt_id = ${promptId})
      limit ${limit}
    ))
    returning 1`
  return rows.length
}

/**
 * Deletes up to `limit` texts that no entry has, or whose organisation no longer stores texts. With null, of all
 * organisations. Returns their number. Needs a transaction: an entry may get a text until that is locked, so only a second
 * statement knows which ones are unused.
 */
export async function deleteUnusedTexts(sql: Sql, organisationId: number | null, limit: number): Promise<number> {
  const locked = await sql<{ ctid: string }>`
    select t.ctid::text
    from prompt_texts t
    join organisations o on o.id = t.organisation_id
    where (${organisationId}::bigint is null or t.organisation_id = ${organisationId})
      and not (o.store_text and exists (
        select from history_entries h where h.organisation_id = t.organisation_id and h.text_hash = t.hash
      ))
    limit ${limit}
    for update of t skip locked`
  const rows = await sql`
    delete from prompt_texts t
    using organisations o
    where t.ctid = any(${locked.map(({ ctid }) => ctid)}::text[]::tid[]) and o.id = t.organisation_id
      and not (o.store_text and exists (
        select from history_entries h where h.organisation_id = t.organisation_id and h.text_hash = t.hash
      ))
    returning 1`
  return rows.length
}

/** Finds the prompt of an entry for an operator, with the name of its file. */
export async function findEntry(sql: Sql, id: number): Promise<{ prompt: OwnedPrompt; name: string } | undefined> {
  const [row] = await sql<OwnedPrompt & { name: string }>`
    select p.id, p.organisation_id as "organisationId", coalesce(p.path, p.public_id) as name
    from organisations o
    join history_entries h on h.organisation_id = o.id and h.id = ${id}
    join prompts p on p.organisation_id = h.organisation_id and p.id = h.prompt_id`
  return row && { prompt: row, name: row.name }
}
