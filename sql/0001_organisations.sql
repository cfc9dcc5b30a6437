-- Times are kept to the millisecond, the precision in which they are shown.

create table plans (
  name text primary key,
  monthly_limit integer not null check (monthly_limit >= 0)
);

insert into plans (name, monthly_limit)
values ('free', 1000), ('team', 10000), ('business', 100000);

create table organisations (
  id bigint generated always as identity primary key,
  public_id text not null unique check (public_id like 'org\_%'),
  name text not null check (name <> ''),
  plan text not null references plans,
  monthly_limit integer check (monthly_limit >= 0),
  retention_days integer check (retention_days > 0),
  created_at timestamptz(3) not null,
  suspended_at timestamptz(3)
);

comment on column organisations.suspended_at is 'since when all its keys are rejected; null while they are not';
comment on column organisations.monthly_limit is 'overrides the limit of the plan';
comment on column organisations.retention_days is 'after how many days its signals are erased; null for never';

create table api_keys (
  id bigint generated always as identity primary key,
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
  replaced_by bigint references api_keys deferrable,
  origins text[] check (cardinality(origins) > 0),
  prompts text[] check (cardinality(prompts) > 0),
  monthly_limit integer check (monthly_limit >= 0),
  counted_with bigint references api_keys deferrable,
  check (origins is not null or (prompts is null and monthly_limit is null and counted_with is null))
);

comment on column api_keys.replaced_by is 'the key that it was rotated to; deferrable, because a restore comes to that one later';
comment on column api_keys.origins is 'the origins of the pages that a browser key is for; null for any other key';
comment on column api_keys.prompts is 'public ids of the prompts that a browser key is limited to; null for all';
comment on column api_keys.monthly_limit is 'how many signals a browser key may record in a month; null for all of the organisation''s';
comment on column api_keys.counted_with is 'of a browser key that a rotation made, the first key of its rotations: they have one count and one limit between them';

create index on api_keys (organisation_id, id);
create index on api_keys (counted_with) where counted_with is not null;

-- The audit log has who changed what, and when. A row is written in the transaction of the change itself.
create table audit_log (
  id bigint generated always as identity primary key,
  organisation_id bigint not null references organisations,
  actor text not null,
  action text not null,
  subject text not null,
  details jsonb not null check (jsonb_typeof(details) = 'object'),
  created_at timestamptz(3) not null
);

comment on column audit_log.actor is 'the public id of a key, cli for an operator, or github for a renamed repository';

create index on audit_log (organisation_id, id);

-- The responses to requests with an Idempotency-Key, so that a retry changes nothing twice. They never hold a secret.
create table idempotent_requests (
  organisation_id bigint not null references organisations,
  key text not null check (length(key) between 1 and 255),
  fingerprint bytea not null check (length(fingerprint) = 32),
  answer jsonb,
  created_at timestamptz(3) not null,
  primary key (organisation_id, key)
);

comment on column idempotent_requests.fingerprint is 'SHA-256 of the method, the path and the body';

create index on idempotent_requests (created_at);

create table prompts (
  id bigint generated always as identity primary key,
  -- Ids are compared byte by byte: the order of a language would cost every look-up time, and is of no use.
  public_id text collate "C" not null unique check (public_id like 'pmt\_%'),
  organisation_id bigint not null references organisations,
  name text not null check (name <> ''),
  repository text,
  path text,
  file_state text check (file_state in ('present', 'removed', 'renamed')),
  file_moved_to text,
  file_seen_at timestamptz(3),
  history_count bigint not null default 0 check (history_count >= 0),
  history_version uuid not null default gen_random_uuid(),
  created_at timestamptz(3) not null,
  check ((repository is null) = (path is null)),
  unique (organisation_id, repository, path)
);

comment on column prompts.repository is 'owner/name of the repository that holds the prompt, with its path there';
comment on column prompts.file_state is 'how the file was last seen on the default branch, at file_seen_at; null for not yet';
comment on column prompts.history_version is 'random, and new with every change: it never names two states of a history, also when a restore or a failover loses changes';

create index on prompts (organisation_id, id);

-- Notifies every replica of a changed limit, so that none goes on refusing signals that now have room.
create function announce_organisation()
returns trigger
language plpgsql
as $$
begin
  perform pg_notify('organisations', new.id::text);
  return null;
end
$$;

create trigger announce after update on organisations
for each row execute function announce_organisation();
