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

-- Deletes at most max_rows requests from before a time, and returns how many there were.
create function prune_requests(before timestamptz, max_rows integer)
returns integer
language plpgsql
set plan_cache_mode = 'force_generic_plan'
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
  deleted integer;
begin
  delete from idempotent_requests
  where ctid = any (array(
    select r.ctid
    from idempotent_requests r
    where r.created_at < before
    order by r.created_at
    limit max_rows
    for update skip locked
  ));
  get diagnostics deleted = row_count;
  return deleted;
end
$$;

-- Finds the keys by their hashes in hexadecimal, but for those that are revoked or whose organisation is suspended. Each
-- hash is looked up through the index: a plan made while the tables were small would scan them, and be kept while they
-- grow.
create function find_live_keys(hashes text[])
returns table (
  hash text, id bigint, organisation_id bigint, org text, key text, scopes json, expires_at timestamptz, browser json
)
language plpgsql
stable
set enable_seqscan = off
as $$
begin
  return query
  select
    encode(found.hash, 'hex'), found.id, found.organisation_id, found.org, found.public_id, to_json(found.scopes),
    found.expires_at,
    case when found.origins is not null then
      json_build_object(
        'origins', found.origins, 'prompts', found.prompts, 'monthlyLimit', found.monthly_limit,
        'countedWith', coalesce(found.counted_with, found.id)
      )
    end
  from unnest(hashes) wanted (hash)
  cross join lateral (
    select k.*, o.public_id as org
    from api_keys k
    join organisations o on o.id = k.organisation_id
    where k.hash = decode(wanted.hash, 'hex') and k.revoked_at is null and o.suspended_at is null
    limit 1
  ) found;
end
$$;

-- Sets when keys were last used. Callers give the ids in ascending order, so that two calls never deadlock.
create function mark_keys_used(key_ids bigint[], used_ats timestamptz[])
returns void
language plpgsql
set enable_seqscan = off
as $$
begin
  for position in 1 .. cardinality(key_ids) loop
    update api_keys k
    set last_used_at = used_ats[position]
    where k.id = key_ids[position] and (k.last_used_at is null or k.last_used_at < used_ats[position]);
  end loop;
end
$$;

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

-- Finds prompts by their public ids, through the index: a plan made while the table was small would scan it, and be kept
-- while it grows. The caller compares the organisations.
create function find_prompts(public_ids text[])
returns table (organisation_id bigint, id bigint, public_id text)
language plpgsql
stable
set plan_cache_mode = 'force_generic_plan'
set enable_seqscan = off
as $$
begin
  return query
  select p.organisation_id, p.id, p.public_id
  from prompts p
  where p.public_id = any (public_ids);
end
$$;

-- Sets how the files of prompts were seen, a JSON array of objects with the names of the columns. What was seen before the
-- last time changes nothing.
create function mark_files_seen(given json)
returns void
language plpgsql
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
begin
  update prompts p
  set file_state = s.file_state, file_moved_to = s.file_moved_to, file_seen_at = s.file_seen_at
  from (
    select distinct on (r.id) *
    from json_to_recordset(given) r (id bigint, file_state text, file_moved_to text, file_seen_at timestamptz)
    order by r.id, r.file_seen_at desc
  ) s
  where p.id = s.id and (p.file_seen_at is null or p.file_seen_at <= s.file_seen_at);
end
$$;

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
