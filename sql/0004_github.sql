-- One row per organisation with a GitHub webhook. The secret is stored as it is, because a signature cannot be checked
-- with a hash of it. last_* describe the last event that was signed with it.
create table github_webhooks (
  organisation_id bigint primary key references organisations,
  secret text not null check (secret <> ''),
  created_at timestamptz(3) not null,
  last_event_at timestamptz(3),
  last_event text,
  last_outcome text
);

-- One row per recorded event. GitHub sends it again with the same id, and then it is not recorded. The id is not signed, so
-- a captured body could be sent with another id. The signature, which is a hash of the body, detects that.
create table github_events (
  organisation_id bigint not null references organisations,
  id text not null check (length(id) between 1 and 255),
  signature text not null check (length(signature) = 71),
  received_at timestamptz(3) not null,
  primary key (organisation_id, id),
  unique (organisation_id, signature)
);

create index on github_events (received_at);

-- One row per repository with linked prompts: its id, which never changes, and the name in the latest event, whose time by
-- GitHub's clock is seen_at. If a later event has another name, the links move to that name.
create table github_repositories (
  organisation_id bigint not null references organisations,
  id bigint not null,
  name text not null,
  seen_at timestamptz(3) not null,
  primary key (organisation_id, id),
  unique (organisation_id, name)
);

-- One row per push and prompt whose file it changes. The event of a pull request lists no files, but the pushes to its
-- branch do. head_sha is the head after the push. prompt_shas are the commits that change the prompt, push_shas are all,
-- both oldest first. all_new: no commit was pushed to another branch before.
create table github_affected_prompts (
  organisation_id bigint not null references organisations,
  repository_id bigint not null,
  branch text not null,
  head_sha text not null,
  prompt_id bigint not null,
  pushed_at timestamptz(3) not null,
  prompt_shas text[] not null,
  push_shas text[] not null,
  all_new boolean not null,
  primary key (organisation_id, repository_id, branch, head_sha, prompt_id),
  foreign key (organisation_id, prompt_id) references prompts on delete cascade
);

create index on github_affected_prompts (pushed_at);
create index on github_affected_prompts using gin (push_shas);

-- One row per pull request. head_repository_id is the repository of its branch, null if that fork was deleted.
-- commit_count is the number of commits on its branch. changed_at is the time of the latest event, by GitHub's clock.
-- opened_sha is the head when it was opened, null until that event arrives. closings has the head (sha) and the time (at) of
-- each time that it was closed without being merged: pushes from before may arrive later.
create table github_pull_requests (
  organisation_id bigint not null references organisations,
  repository_id bigint not null,
  number integer not null check (number > 0),
  url text not null,
  title text,
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
  commit_count integer not null,
  changed_at timestamptz(3) not null,
  opened_sha text,
  closings jsonb not null default '[]',
  primary key (organisation_id, repository_id, number)
);

create index on github_pull_requests (organisation_id, repository_id, merge_commit_sha);
create index on github_pull_requests (organisation_id, repository_id, head_branch);
create index on github_pull_requests (closed_at) where closed_at is not null;

-- One row per pull request and prompt that it is known to change. Rows outlive the pushes to the pull request's branch.
create table github_pull_request_prompts (
  organisation_id bigint not null,
  repository_id bigint not null,
  number integer not null,
  prompt_id bigint not null,
  primary key (organisation_id, repository_id, number, prompt_id),
  foreign key (organisation_id, prompt_id) references prompts on delete cascade,
  foreign key (organisation_id, repository_id, number) references github_pull_requests on delete cascade
);
