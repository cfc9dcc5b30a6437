-- A change: a history entry that went live. It is live until the next change.
create view history_changes as
select * from history_entries where action in ('deployed', 'pr_merged');

create index history_changes_by_time on history_entries (prompt_id, created_at, id)
where action in ('deployed', 'pr_merged');

-- Also finds a commit by its first characters.
create index history_changes_by_commit on history_entries (prompt_id, commit_sha, created_at, id)
where action in ('deployed', 'pr_merged');
