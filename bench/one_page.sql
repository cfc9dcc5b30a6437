\set prompt random(1, 100)
select id, action, user_name, user_email, commit_sha, pr_number, pr_url, branch_name, created_at
from history_entries
where prompt_id = :prompt
order by created_at desc, id desc
limit 25;
