-- A change: a history entry after which another commit was live. It is live until the next change.
create view history_changes as
select *, lower(commit_sha) as commit_key from history_entries where is_change;

create index history_changes_by_time on history_entries (prompt_id, created_at, id)
where is_change;

create index history_changes_by_commit on history_entries (prompt_id, lower(commit_sha), created_at, id)
where is_change;
