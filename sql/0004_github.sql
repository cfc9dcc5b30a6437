-- The secret is kept as it is: checking a signature needs it, so a hash of it would not do.
create table github_webhooks (
  organisation_id bigint primary key references organisations,
  secret text not null check (secret <> ''),
  created_at timestamptz(3) not null
);

-- The webhook of an organisation, together with the organisation that it was found for. It is found by indexes alone: a
-- plan made while the tables were nearly empty would scan them, and be kept while they grow.
create function find_github_webhook(public_id text)
returns table (org text, organisation_id bigint, secret text)
language plpgsql
stable
set enable_seqscan = off
set plan_cache_mode = 'force_custom_plan'
as $$
begin
  return query
  select o.public_id, w.organisation_id, w.secret
  from organisations o
  join github_webhooks w on w.organisation_id = o.id
  where o.public_id = find_github_webhook.public_id;
end
$$;

-- Deliveries that were recorded, so that a redelivery is not.
create table github_deliveries (
  organisation_id bigint not null references organisations,
  delivery text not null check (length(delivery) between 1 and 255),
  received_at timestamptz(3) not null,
  primary key (organisation_id, delivery)
);

create index on github_deliveries (received_at);

-- The repositories that deliver, by the id that GitHub gives them for good, with the name that they bear: a name follows its
-- repository, and the links of prompts follow the name.
create table github_repositories (
  organisation_id bigint not null references organisations,
  id bigint not null,
  name text not null,
  seen_at timestamptz(3) not null,
  primary key (organisation_id, id),
  unique (organisation_id, name)
);

comment on column github_repositories.seen_at is 'the time, on GitHub, of the latest delivery; an earlier one does not change the name';

-- Which prompts a push touched. A pull request's event does not say which files it changes; the pushes to its
-- branch did.
create table github_touches (
  organisation_id bigint not null references organisations,
  repository_id bigint not null,
  branch text not null,
  commit_sha text not null,
  prompt_id bigint not null references prompts,
  pushed_at timestamptz(3) not null,
  touching text[] not null,
  pushed text[] not null,
  all_new boolean not null,
  primary key (organisation_id, repository_id, branch, commit_sha, prompt_id)
);

comment on column github_touches.commit_sha is 'the head of the branch after the push';
comment on column github_touches.touching is 'the commits of the push that touch the prompt, oldest first';
comment on column github_touches.pushed is 'all commits of the push, oldest first';
comment on column github_touches.all_new is 'whether none of them was pushed before, to another branch';

create index on github_touches (pushed_at);
create index on github_touches using gin (pushed);

create table github_pull_requests (
  organisation_id bigint not null references organisations,
  repository_id bigint not null,
  number integer not null check (number > 0),
  url text not null,
  state text not null check (state in ('open', 'merged', 'closed')),
  head_repository_id bigint,
  head_branch text not null,
  head_sha text not null,
  base_branch text not null,
  merge_commit_sha text check (state <> 'merged' or merge_commit_sha is not null),
  opened_by jsonb not null,
  opened_at timestamptz(3) not null,
  merged_by jsonb,
  closed_at timestamptz(3),
  commits integer not null,
  reopenings integer not null default 0,
  primary key (organisation_id, repository_id, number)
);

comment on column github_pull_requests.commits is 'how many its branch has';
comment on column github_pull_requests.head_repository_id is 'where the branch is; null when that fork is gone';

-- Indexes on one expression each, because one that began with the organisation and the repository could be taken for
-- the primary key, or the primary key for it: without statistics a repository is guessed to have one pull request.
create index on github_pull_requests ((organisation_id::text || ' ' || repository_id::text || ' ' || merge_commit_sha));
create index on github_pull_requests ((organisation_id::text || ' ' || repository_id::text || ' ' || head_branch));
create index on github_pull_requests (closed_at) where closed_at is not null;

-- Returns what was pushed to the branch of a pull request since the branch was last merged into the same base. The
-- settings also keep the function from being inlined, so that it looks for one branch and not for many.
create function github_branch_touches(pr github_pull_requests)
returns setof github_touches
language sql
stable
set enable_seqscan = off
as $$
  select t.*
  from github_touches t
  where t.organisation_id = pr.organisation_id and t.repository_id = pr.repository_id
    and t.repository_id = pr.head_repository_id and t.branch = pr.head_branch and t.pushed_at > coalesce((
      select max(merged.closed_at) from github_pull_requests merged
      where merged.organisation_id::text || ' ' || merged.repository_id::text || ' ' || merged.head_branch
          = pr.organisation_id::text || ' ' || pr.repository_id::text || ' ' || pr.head_branch
        and merged.head_repository_id = pr.head_repository_id and merged.base_branch = pr.base_branch
        and merged.number <> pr.number and merged.state = 'merged'
    ), '-infinity')
$$;

-- The prompts that a pull request is known to change. They outlive what is remembered of its branch.
create table github_pull_request_prompts (
  organisation_id bigint not null,
  repository_id bigint not null,
  number integer not null,
  prompt_id bigint not null references prompts,
  primary key (organisation_id, repository_id, number, prompt_id),
  foreign key (organisation_id, repository_id, number) references github_pull_requests on delete cascade
);
