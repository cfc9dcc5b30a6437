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
  created_at timestamptz(3) not null
);

comment on column organisations.monthly_limit is 'overrides the limit of the plan';

create table api_keys (
  id bigint generated always as identity primary key,
  public_id text not null unique check (public_id like 'key\_%'),
  organisation_id bigint not null references organisations,
  name text not null,
  prefix text not null,
  hash bytea not null unique check (length(hash) = 32),
  created_at timestamptz(3) not null,
  expires_at timestamptz(3),
  last_used_at timestamptz(3),
  revoked_at timestamptz(3)
);

create index on api_keys (organisation_id, id);

-- Finds the keys that are not revoked by their hashes in hexadecimal. Each hash is looked up through the index: a plan
-- made while the tables were small would scan them, and be kept while they grow.
create function find_live_keys(hashes text[])
returns table (hash text, id bigint, organisation_id bigint, org text, key text, expires_at timestamptz)
language plpgsql
stable
set enable_seqscan = off
as $$
begin
  return query
  select encode(found.hash, 'hex'), found.id, found.organisation_id, found.org, found.key, found.expires_at
  from unnest(hashes) asked (hash)
  cross join lateral (
    select k.hash, k.id, k.organisation_id, o.public_id as org, k.public_id as key, k.expires_at
    from api_keys k
    join organisations o on o.id = k.organisation_id
    where k.hash = decode(asked.hash, 'hex') and k.revoked_at is null
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
  public_id text not null unique check (public_id like 'pmt\_%'),
  organisation_id bigint not null references organisations,
  name text not null check (name <> ''),
  repository text,
  path text,
  history_count bigint not null default 0 check (history_count >= 0),
  history_version uuid not null default gen_random_uuid(),
  created_at timestamptz(3) not null,
  check ((repository is null) = (path is null)),
  unique (organisation_id, repository, path)
);

comment on column prompts.repository is 'owner/name of the repository that holds the prompt, with its path there';
comment on column prompts.history_version is 'drawn anew with every change, so that it never repeats for another history, not even after a restore or a failover that lost changes';

create index on prompts (organisation_id, id);

-- A changed limit is told to every replica, so that none goes on refusing what now has room.
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
