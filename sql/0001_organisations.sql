-- Times have the precision of a millisecond, in which they are shown.
--
-- The keys of tenants' tables begin with the organisation: after a failover that lost changes, a row id that a replica remembers
-- may be that of another organisation's row.

-- A tenant: it owns keys, prompts and signals, and has one monthly limit.
create table organisations (
  id bigint generated always as identity primary key,
  public_id text not null unique check (public_id like 'org\_%'),
  name text not null check (name <> ''),
  plan text not null,
  monthly_limit integer not null check (monthly_limit >= 0),
  retention_days integer check (retention_days > 0),
  store_text boolean not null default false,
  created_at timestamptz(3) not null,
  suspended_at timestamptz(3)
);

comment on column organisations.store_text is 'whether the texts of prompts may be stored';

-- An API key of an organisation. Only its SHA-256 is stored.
create table api_keys (
  id bigint generated always as identity,
  public_id text not null unique check (public_id like 'key\_%'),
  organisation_id bigint not null references organisations,
  name text not null,
  prefix text not null,
  hash bytea not null unique check (length(hash) = 32),
  scopes text[] not null check (cardinality(scopes) > 0),
  created_at timestamptz(3) not null,
  expires_at timestamptz(3),
  last_used_at timestamptz(3),
  revoked_at timestamptz(3),
  replaced_by bigint,
  origins text[] check (cardinality(origins) > 0),
  prompts text[] check (cardinality(prompts) > 0),
  monthly_limit integer check (monthly_limit >= 0),
  counted_with bigint,
  primary key (organisation_id, id),
  foreign key (organisation_id, replaced_by) references api_keys deferrable,
  foreign key (organisation_id, counted_with) references api_keys deferrable,
  check (origins is not null or (prompts is null and monthly_limit is null))
);

comment on column api_keys.replaced_by is 'the key that it was rotated to; deferrable, because a restore inserts that key later';
comment on column api_keys.counted_with is 'the first key of the rotations that led to this browser key: it has the count of both';

-- A change: who made it, what it changed and when. Written in the transaction of the change.
create table audit_log (
  id bigint generated always as identity,
  organisation_id bigint not null references organisations,
  actor text not null,
  action text not null,
  subject text not null,
  details jsonb not null check (jsonb_typeof(details) = 'object'),
  created_at timestamptz(3) not null,
  primary key (organisation_id, id)
);

-- A prompt of an organisation, the file in a repository that it is linked to, and the state of its history.
create table prompts (
  id bigint generated always as identity,
  -- Compared byte by byte: the collation of a language would slow every look-up down.
  public_id text collate "C" not null unique check (public_id like 'pmt\_%'),
  organisation_id bigint not null references organisations,
  name text not null check (name <> ''),
  -- The name with each number padded, so that step 9 sorts before step 10.
  name_key text collate "und-x-icu" generated always as (
    regexp_replace(regexp_replace(name, '\d+', '00000000000000000000\&', 'g'), '\d*(\d{20})', '\1', 'g')
  ) stored,
  repository text,
  path text,
  file_state text check (file_state in ('present', 'removed', 'renamed')),
  file_moved_to text,
  file_seen_at timestamptz(3),
  live_branch text check (live_branch <> ''),
  archived boolean not null default false,
  history_count bigint not null default 0 check (history_count >= 0),
  history_version uuid not null default gen_random_uuid(),
  created_at timestamptz(3) not null,
  primary key (organisation_id, id),
  check ((repository is null) = (path is null))
);

-- Partial: otherwise Postgres may use it to find a prompt by its id, and read all prompts of the organisation.
create unique index on prompts (organisation_id, repository, path) where repository is not null;

-- The file of an erased prompt, for which `sync --create` creates no other one.
create table erased_files (
  id bigint generated always as identity,
  organisation_id bigint not null references organisations,
  repository text not null,
  path text not null,
  primary key (organisation_id, id),
  unique (organisation_id, repository, path)
);

comment on column prompts.live_branch is 'the branch whose entries are changes; null: those of every branch';
comment on column prompts.archived is 'lists leave it out unless asked for; it still records';
comment on column prompts.history_version is 'a new random value with every change, so that it never names two states, even if a failover loses changes';
