-- A push may bring several merges, each known by a commit of its own, and commits of nobody's pull request beside them.
-- All null for a push that was remembered before.
alter table github_touches
  add column touching text[],
  add column pushed text[],
  add column all_new boolean;

comment on column github_touches.touching is 'the commits of the push that touch the prompt, oldest first';
comment on column github_touches.pushed is 'all commits of the push, oldest first';
comment on column github_touches.all_new is 'whether none of them was pushed before, to another branch';

create index on github_touches using gin (pushed);

alter table github_pull_requests add column commits integer;

comment on column github_pull_requests.commits is 'how many its branch has';

create index on github_pull_requests (closed_at) where state <> 'open';
