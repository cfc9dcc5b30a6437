-- A URL that events are sent to. Null in events or prompts: all of them. Of kind slack, the url is a secret too. After a
-- rotation the old secrets sign beside the new one until old_secret_ends_at. failing_since_at is the first failure since the
-- last success. Who was sent to longest ago comes first, and a chat gets a message a second: last_sent_at.
create table webhook_endpoints (
  id bigint generated always as identity,
  public_id text not null unique check (public_id like 'whe\_%'),
  organisation_id bigint not null references organisations,
  kind text not null check (kind in ('webhook', 'slack')),
  url text not null check (url <> ''),
  events text[] check (cardinality(events) > 0),
  prompts text[] check (cardinality(prompts) > 0),
  secret text not null check (secret like 'whsec\_%'),
  old_secrets text[] not null default '{}',
  old_secret_ends_at timestamptz(3),
  created_at timestamptz(3) not null,
  failing_since_at timestamptz(3),
  last_sent_at timestamptz(3),
  disabled_at timestamptz(3),
  disabled_reason text,
  primary key (organisation_id, id),
  check ((disabled_at is null) = (disabled_reason is null))
);

-- What happened, written in the transaction that causes it: of events with the same dedup_key, only the first is kept. The
-- public id is the webhook-id of every attempt. data is what is sent.
create table webhook_events (
  id bigint generated always as identity,
  public_id text not null unique check (public_id like 'msg\_%'),
  organisation_id bigint not null references organisations,
  type text not null,
  dedup_key text not null,
  data jsonb not null check (jsonb_typeof(data) = 'object'),
  created_at timestamptz(3) not null,
  primary key (organisation_id, id),
  unique (organisation_id, dedup_key)
);

create index on webhook_events (created_at);

-- An event for one endpoint. While a replica sends it, next_attempt_at is the end of its lease; it is null when nothing more
-- is sent. response_text is the begin of the answer, or why there was none.
create table webhook_deliveries (
  organisation_id bigint not null,
  endpoint_id bigint not null,
  event_id bigint not null,
  status text not null default 'pending' check (status in ('pending', 'delivered', 'failed')),
  attempts integer not null default 0,
  next_attempt_at timestamptz(3),
  last_attempt_at timestamptz(3),
  response_code integer,
  response_text text,
  primary key (organisation_id, endpoint_id, event_id),
  foreign key (organisation_id, endpoint_id) references webhook_endpoints on delete cascade,
  foreign key (organisation_id, event_id) references webhook_events on delete cascade,
  check ((status = 'pending') = (next_attempt_at is not null))
);

-- The next delivery of an endpoint, and its oldest.
create index on webhook_deliveries (organisation_id, endpoint_id, next_attempt_at) where status = 'pending';
create index on webhook_deliveries (organisation_id, endpoint_id, event_id) where status = 'pending';
create index on webhook_deliveries (organisation_id, event_id);

-- The verdicts that a change has had, so that each is announced once.
create table decided_verdicts (
  organisation_id bigint not null,
  entry_id bigint not null,
  verdict text not null check (verdict in ('better', 'worse', 'same')),
  decided_at timestamptz(3) not null,
  primary key (organisation_id, entry_id, verdict),
  foreign key (organisation_id, entry_id) references history_entries on delete cascade
);

-- The newest signal of a prompt when its verdicts were last checked, and when it is next checked whether its rate changed by
-- itself.
create table checked_prompts (
  organisation_id bigint not null,
  prompt_id bigint not null,
  last_signal_id bigint not null,
  rate_due_at timestamptz(3) not null,
  primary key (organisation_id, prompt_id),
  foreign key (organisation_id, prompt_id) references prompts on delete cascade
);
