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

create table prompts (
  id bigint generated always as identity primary key,
  public_id text not null unique check (public_id like 'pmt\_%'),
  organisation_id bigint not null references organisations,
  name text not null check (name <> ''),
  repository text,
  path text,
  history_count bigint not null default 0 check (history_count >= 0),
  history_version bigint not null default 0,
  created_at timestamptz(3) not null,
  check ((repository is null) = (path is null)),
  unique (organisation_id, repository, path)
);

comment on column prompts.repository is 'owner/name of the repository that holds the prompt, with its path there';
comment on column prompts.history_version is 'rises with every change of the history';

create index on prompts (organisation_id, id);

-- The entries of a prompt are numbered 1, 2, 3 … in order of time, so that a page is a range of seq
-- and costs the same at any depth. No foreign keys, here and below: prompts are never deleted, merge_history and
-- record_signals are the only writers, and a check for each row would cost more than the row.
create table history_entries (
  id bigint generated always as identity primary key,
  organisation_id bigint not null,
  prompt_id bigint not null,
  seq bigint not null check (seq > 0),
  action text not null check (action in ('deployed', 'pr_opened', 'pr_merged', 'pr_closed')),
  user_name text not null,
  user_email text not null,
  commit_sha text not null,
  branch_name text not null,
  pr_number integer check (pr_number > 0),
  pr_url text,
  created_at timestamptz(3) not null,
  -- Deferrable, so that one statement may shift many numbers by one.
  unique (prompt_id, seq) deferrable initially immediate,
  -- What makes an entry the same when it is told again.
  unique nulls not distinct (prompt_id, commit_sha, action, pr_number),
  check (
    case action
      when 'deployed' then pr_number is null and pr_url is null
      else pr_number is not null and pr_url is not null
    end
  )
);

create index on history_entries (prompt_id, created_at, id);
create index on history_entries (prompt_id, action, seq);
create index on history_entries (prompt_id, branch_name, seq);

create table signals (
  id bigint generated always as identity primary key,
  organisation_id bigint not null,
  prompt_id bigint not null,
  value text not null check (value in ('positive', 'negative')),
  metadata jsonb check (jsonb_typeof(metadata) = 'object'),
  created_at timestamptz(3) not null
);

create table signal_usage (
  organisation_id bigint not null references organisations,
  month date not null check (extract(day from month) = 1),
  used integer not null check (used >= 0),
  primary key (organisation_id, month)
);
