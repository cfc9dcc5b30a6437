import type { Sql } from '../db/client.ts'
import type { OwnSignals } from '../impact/own_signals.ts'
import type { Prompt } from '../prompts/find.ts'

/** A signal in a list. Its metadata is JSON, because numbers would not survive JavaScript's. */
export type SignalRow = {
  id: number
  value: string
  metadata: string | null
  created_at: Date
  subject: string | null
}

type SignalFilter = {
  value: string | null
  /** Top-level fields of the metadata, with the value that each must have, as it is listed, or a list with it. */
  metadata: [key: string, text: string][]
  /** Only those of one change. */
  own: OwnSignals | undefined
}

/** What a list of the metadata may have for a text in a filter. Numbers of Postgres have no exponent. */
const scalarOf = (text: string): string =>
  /^(-?(0|[1-9]\d*)(\.\d+)?|true|false|null)$/.test(text) ? text : JSON.stringify(text)

/** The position of a signal in the order of time. */
export type Position = { at: Date; id: number }

/** From a time on, and before a position; null without a bound. */
export type Range = { since: Date | null; before: Position | null }

/**
 * The newest matching signals of a prompt in a range. Examines at most `maxExamined` signals, so that a rare value
 * does not make the statement long; `stoppedAt` is the last one if that was not enough.
 */
export async function selectSignals(
  sql: Sql,
  prompt: Prompt,
  { since, before }: Range,
  { value, metadata, own }: SignalFilter,
  maxRows: number,
  maxExamined: number,
): Promise<{ rows: SignalRow[]; stoppedAt: Position | null }> {
  // One upper bound, because of two the scan of the index may start at the later one. Metadata is compared as a string,
  // because 0.1 and 0.10 are equal as jsonb. `@>` only keeps long lists from being split, and `offset 0` each metadata from
  // being decompressed several times.
  const rows = await sql<SignalRow & { isWanted: boolean; number: number }>`
    select
      id, value, metadata::text as metadata, created_at, split_part(subject, e'\\t', -1) as subject, is_wanted as "isWanted", number
    from (
      select
        s.id, s.value, s.metadata, s.created_at, s.subject, row_number() over (order by s.created_at desc, s.id desc) as number,
        (${value}::text is null or s.value = ${value}::text) and not exists (
          select from unnest(
            ${metadata.map(([key]) => key)}::text[], ${metadata.map(([, text]) => text)}::text[],
            ${metadata.map(([, text]) => scalarOf(text))}::text[]
          ) wanted (key, text, scalar)
          cross join lateral (select s.metadata -> wanted.key as found offset 0) f
          where coalesce(f.found #>> '{}', f.found::text) is distinct from wanted.text
            and case
              when jsonb_typeof(f.found) = 'array' and f.found @> any (array[to_jsonb(wanted.text), wanted.scalar::jsonb])
              then wanted.text not in (
                select coalesce(e.element #>> '{}', 'null') from jsonb_array_elements(f.found) e (element)
              )
              else true
            end
        ) and (${!own} or case
          when c.name in (select unnest(${own?.names ?? []}::text[]))
            and s.created_at >= coalesce(${own?.named[0] ?? null}::timestamptz, '-infinity')
            and s.created_at < coalesce(${own?.named[1] ?? null}::timestamptz, 'infinity')
          then true
          when c.name in (select unnest(${own?.known ?? []}::text[])) then false
          else s.created_at >= ${own?.live[0] ?? null}::timestamptz
            and s.created_at < coalesce(${own?.live[1] ?? null}::timestamptz, 'infinity')
        end) as is_wanted
      from (
        select s.id, s.value, s.metadata, s.created_at, s.subject
        from signals s
        where s.organisation_id = ${prompt.organisationId} and s.prompt_id = ${prompt.id}
          and (s.created_at, s.id) < (
            ${before?.at.toISOString() ?? 'infinity'}::text::timestamptz,
            ${String(before?.id ?? 0)}::text::bigint
          )
          and s.created_at >= ${since?.toISOString() ?? '-infinity'}::text::timestamptz
        order by s.created_at desc, s.id desc
        limit ${maxExamined}
      ) s
      cross join lateral (select case when ${!!own} then commit_of_signal(s.metadata) end as name) c
    ) s
    where is_wanted or number = ${maxExamined}
    order by created_at desc, id desc
    limit ${maxRows}`
  const wanted = rows.filter(({ isWanted }) => isWanted)
  const last = rows.at(-1)
  const hasStopped = last?.number === maxExamined && wanted.length < maxRows
  return { rows: wanted, stoppedAt: hasStopped ? { id: last.id, at: last.created_at } : null }
}

/** An export continues after this position. */
export type ExportPosition = { at: Date | null; id: number }

/** The lines are null when no signal matches. The last time and id are those of the last signal examined. */
type ExportedLines = { lines: string | null; exported: number; examined: number; lastTime: Date; lastId: number }

export const csvHeading = 'id,prompt,value,created_at,metadata,subject\r\n'

/**
 * The next lines of an export, in order of time: of at most `maxRows` signals, and up to `maxBytes`, so that the statement
 * is short. Postgres builds the lines, because sending, parsing and writing each signal takes several times as long.
 */
export async function selectLines(
  sql: Sql,
  { id, organisationId, publicId }: Prompt,
  after: ExportPosition,
  { until, value, format }: { until: Date | null; value: string | null; format: 'ndjson' | 'csv' },
  maxRows: number,
  maxBytes: number,
): Promise<ExportedLines> {
  // No CSV cell starts with a character that a spreadsheet takes for a formula: metadata starts with a brace, and a subject
  // that starts with one gets an apostrophe, which an import removes. What precedes the tab is not shown: see ofPage.
  const [row] = await sql<ExportedLines>`
    select
      string_agg(line, '') as lines, count(line) as exported, count(*) as examined, max(created_at) as "lastTime",
      (array_agg(id))[count(*)] as "lastId"
    from (
      select
        id, created_at, line, sum(octet_length(line)) over (
          order by created_at, id rows between unbounded preceding and 1 preceding
        ) as bytes_before
      from (
        select
          s.id, s.created_at,
          case
            when s.value <> ${value}::text then null
            when ${format}::text = 'csv' then
              s.id || ',' || ${publicId}::text || ',' || s.value || ',' || t.text || ','
              || coalesce('"' || replace(s.metadata::text, '"', '""') || '"', '') || ','
              || coalesce('"' || replace(regexp_replace(t.subject, '^[-=+@'']', '''\\&'), '"', '""') || '"', '') || e'\\r\\n'
            else
              '{"id":' || s.id || ',"prompt":"' || ${publicId}::text || '","value":"' || s.value || '","metadata":'
              || coalesce(s.metadata::text, 'null') || ',"created_at":"' || t.text || '"'
              || coalesce(',"subject":' || to_json(t.subject), '') || e'}\\n'
          end as line
        from signals s
        cross join lateral (
          select
            to_char(s.created_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as text,
            split_part(s.subject, e'\\t', -1) as subject
        ) t
        where s.organisation_id = ${organisationId} and s.prompt_id = ${id}
          and (s.created_at, s.id) > (
            ${after.at?.toISOString() ?? '-infinity'}::text::timestamptz, ${String(after.id)}::text::bigint
          )
          and s.created_at < ${until?.toISOString() ?? 'infinity'}::text::timestamptz
        order by s.created_at, s.id
        limit ${maxRows}
      ) s
    ) s
    where coalesce(bytes_before, 0) < ${maxBytes}::integer`
  return row as ExportedLines
}

/** The time and the prompt of a signal of an organisation; undefined if there is no such signal. */
export async function findSignal(sql: Sql, organisationId: number, signalId: number) {
  const [row] = await sql<Prompt & { at: Date }>`
    select p.id, p.organisation_id as "organisationId", p.public_id as "publicId", s.created_at as at
    from prompts p
    cross join lateral (
      select s.created_at from signals s
      where s.organisation_id = p.organisation_id and s.prompt_id = p.id and s.id = ${String(signalId)}::text::bigint
      limit 1
    ) s
    where p.organisation_id = ${organisationId}
    limit 1`
  return row
}
