-- What was answered to a request that carried a key. `record` is a hash of the operation, its path parameters and the key;
-- `digest` is a keyed hash of what was asked. The row is written in the transaction that did the work. `run_id` is the run that a
-- start gave: the record lives at least as long as that run is alive, and goes with it.
create table request_keys (
  tenant text not null,
  record bytea not null,
  operation text not null,
  digest bytea not null,
  run_id uuid,
  status smallint not null,
  location text,
  body bytea,
  sealed_with text,
  answered_at timestamptz not null default deedbox_now(),
  constraint request_keys_pkey primary key (tenant, record),
  constraint request_keys_tenant foreign key (tenant) references tenants on delete cascade,
  constraint request_keys_run foreign key (tenant, run_id) references runs on delete cascade,
  constraint request_keys_record check (octet_length(record) = 32),
  constraint request_keys_digest check (octet_length(digest) = 32)
);

create index request_keys_answered on request_keys (answered_at);
create index request_keys_run on request_keys (tenant, run_id) where run_id is not null;

alter table tokens
  add column scopes text[] not null default '{deploy,run,read}',
  add column expires_at timestamptz;

update tokens set scopes = '{admin}' where tenant = '_admin';

alter table tokens
  alter column scopes drop default,
  add constraint tokens_scopes check (
    scopes <> '{}' and case when tenant = '_admin' then scopes = '{admin}' else scopes <@ '{deploy,run,read}' end);
