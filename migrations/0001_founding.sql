-- The founding schema. Every table belongs to a tenant, and every key and index starts with the tenant, except
-- `runs_due`, which workers use to find work of all tenants. Nothing here is shared between tenants.

-- The only clock of the database's statements. Leases, retry times and key windows are judged by it and by nothing
-- else, so that the clocks of workers cannot disagree. Stable within a statement, so that indexes can be used.
create function deedbox_now() returns timestamptz
  language sql stable parallel safe
  as $$ select statement_timestamp() $$;

-- Tenants. `_admin` is not a tenant: it holds the tokens that may manage tenants.
create table tenants (
  tenant text not null,
  created_at timestamptz not null default deedbox_now(),
  constraint tenants_pkey primary key (tenant),
  constraint tenants_name check (tenant = '_admin' or tenant ~ '^[a-z0-9][a-z0-9-]{0,62}$')
);

insert into tenants (tenant) values ('_admin');

-- Bearer tokens: only the BLAKE3 hash of the secret part is kept.
create table tokens (
  tenant text not null,
  token_id uuid not null,
  secret_hash bytea not null,
  label text not null,
  created_at timestamptz not null default deedbox_now(),
  constraint tokens_pkey primary key (tenant, token_id),
  constraint tokens_tenant foreign key (tenant) references tenants on delete cascade,
  constraint tokens_secret_hash check (octet_length(secret_hash) = 32)
);

-- Credentials for providers, sealed with a key that is not in the database.
create table secrets (
  tenant text not null,
  name text not null,
  key_id text not null,
  sealed bytea not null,
  updated_at timestamptz not null default deedbox_now(),
  constraint secrets_pkey primary key (tenant, name),
  constraint secrets_tenant foreign key (tenant) references tenants on delete cascade
);

-- Uploaded components by the BLAKE3 digest of their bytes. `imports` and `activities` are JSON texts.
create table modules (
  tenant text not null,
  digest bytea not null,
  bytes bytea not null,
  imports text not null,
  activities text not null,
  created_at timestamptz not null default deedbox_now(),
  constraint modules_pkey primary key (tenant, digest),
  constraint modules_tenant foreign key (tenant) references tenants on delete cascade,
  constraint modules_digest check (octet_length(digest) = 32)
);
alter table modules alter column bytes set storage external;

-- Activities and their versions. A version never changes: a run keeps the one it started with.
create table activities (
  tenant text not null,
  activity text not null,
  latest integer not null,
  retired boolean not null default false,
  constraint activities_pkey primary key (tenant, activity),
  constraint activities_tenant foreign key (tenant) references tenants on delete cascade
);

create table activity_versions (
  tenant text not null,
  activity text not null,
  version integer not null,
  digest bytea not null,
  export text not null,
  policy text not null,
  created_at timestamptz not null default deedbox_now(),
  constraint activity_versions_pkey primary key (tenant, activity, version),
  constraint activity_versions_activity foreign key (tenant, activity) references activities,
  constraint activity_versions_module foreign key (tenant, digest) references modules
);

create index activity_versions_digest on activity_versions (tenant, digest);

-- Runs, which are also the queue. `due_at` is when a worker may next lease the run: its start or retry time, or, while
-- it runs, the end of its lease; null when only a resolution or nothing at all makes it due. `token` grows with every
-- lease. `attempts` counts attempts begun, `spent` those that count against `max_attempts`.
create table runs (
  tenant text not null,
  run_id uuid not null,
  activity text not null,
  version integer not null,
  state text not null,
  input text not null,
  output text,
  failure text,
  retry text not null,
  max_attempts integer not null,
  attempts integer not null default 0,
  spent integer not null default 0,
  token bigint not null default 0,
  worker text,
  due_at timestamptz,
  waiting_effect bytea,
  created_at timestamptz not null default deedbox_now(),
  started_at timestamptz,
  ended_at timestamptz,
  constraint runs_pkey primary key (tenant, run_id),
  constraint runs_version foreign key (tenant, activity, version) references activity_versions,
  constraint runs_state check (state in ('queued', 'running', 'waiting', 'completed', 'failed', 'cancelled')),
  constraint runs_ended check ((state in ('completed', 'failed', 'cancelled')) = (ended_at is not null)),
  constraint runs_idle check (ended_at is null or due_at is null)
);

create index runs_due on runs (due_at) where due_at is not null;
create index runs_newest on runs (tenant, created_at, run_id);
create index runs_waiting_effect on runs (tenant, waiting_effect) where waiting_effect is not null;

create table attempts (
  tenant text not null,
  run_id uuid not null,
  attempt integer not null,
  token bigint not null,
  worker text not null,
  started_at timestamptz not null default deedbox_now(),
  ended_at timestamptz,
  outcome text,
  failure text,
  peak_memory_bytes bigint,
  constraint attempts_pkey primary key (tenant, run_id, attempt),
  constraint attempts_run foreign key (tenant, run_id) references runs on delete cascade,
  constraint attempts_ended check ((ended_at is null) = (outcome is null))
);

-- The ledger. One row per effect: its identity, what the first claim pinned (wire key, carrier, account, profile
-- version, choice for an unknown outcome), who holds it, and the recorded answer. The holder is a run, its lease
-- token and a send number: settling compares all three.
create table effects (
  tenant text not null,
  effect_id bytea not null,
  keying text not null,
  identity text not null,
  run_id uuid not null,
  provider text not null,
  account text not null,
  profile_version text not null,
  method text not null,
  url text not null,
  digest bytea not null,
  wire_key text,
  carrier text,
  window_ms bigint,
  window_from text not null,
  resend text not null,
  on_unknown text not null,
  state text not null,
  holder_run uuid not null,
  holder_token bigint not null,
  holder_send integer not null,
  first_sent_at timestamptz not null,
  last_sent_at timestamptz not null,
  settled_at timestamptz,
  source text,
  status integer,
  headers text,
  body bytea,
  doubled boolean not null default false,
  constraint effects_pkey primary key (tenant, effect_id),
  constraint effects_effect_id check (octet_length(effect_id) = 32),
  constraint effects_digest check (octet_length(digest) = 32),
  constraint effects_keying check (keying in ('business-identity', 'activity-recipe')),
  constraint effects_state check (state in ('claimed', 'completed', 'released', 'escaped')),
  constraint effects_resend check (resend in ('idempotent', 'keyed', 'unsafe')),
  constraint effects_window_from check (window_from in ('first', 'last')),
  constraint effects_on_unknown check (on_unknown in ('ask', 'at-most-once', 'at-least-once')),
  constraint effects_source check (source in ('original', 'looked-up', 'supplied')),
  constraint effects_answer check ((state = 'completed') = (status is not null and source is not null))
);

create index effects_claimed on effects (tenant, holder_run) where state = 'claimed';
create index effects_escaped on effects (tenant, first_sent_at, effect_id) where state = 'escaped';
create index effects_oldest on effects (tenant, first_sent_at, effect_id);

-- One row per transport attempt of an effect, written by the claim that precedes it.
create table sends (
  tenant text not null,
  effect_id bytea not null,
  send integer not null,
  run_id uuid not null,
  attempt integer not null,
  token bigint not null,
  started_at timestamptz not null,
  ended_at timestamptz,
  result text,
  status integer,
  constraint sends_pkey primary key (tenant, effect_id, send),
  constraint sends_effect foreign key (tenant, effect_id) references effects on delete cascade,
  constraint sends_result check (result in ('answered', 'not-applied', 'unknown', 'in-flight')),
  constraint sends_ended check ((ended_at is null) = (result is null))
);

create index sends_run on sends (tenant, run_id, started_at);

create table checkpoints (
  tenant text not null,
  run_id uuid not null,
  state bytea not null,
  saved_at timestamptz not null,
  constraint checkpoints_pkey primary key (tenant, run_id),
  constraint checkpoints_run foreign key (tenant, run_id) references runs on delete cascade
);

-- What guests print, one row per attempt and stream, cut at the host's cap.
create table logs (
  tenant text not null,
  run_id uuid not null,
  attempt integer not null,
  stream text not null,
  text text not null,
  truncated boolean not null,
  constraint logs_pkey primary key (tenant, run_id, attempt, stream),
  constraint logs_run foreign key (tenant, run_id) references runs on delete cascade,
  constraint logs_stream check (stream in ('stdout', 'stderr'))
);
