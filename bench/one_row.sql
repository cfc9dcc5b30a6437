\set organisation random(1, 10)
\set prompt random(1, 100)
insert into single_inserts (organisation_id, prompt_id, value, metadata, created_at)
values (:organisation, :prompt, 'positive', '{"session":"a81c","rating":5}', now());
