-- Keys that seal what is secret. Each is wrapped with a master key that is not in the database, and bound to its row.

-- `purpose` is `data` for what a tenant's secrets and recorded answers are sealed with; `random`, `artefacts` and `digests` are
-- keys of the whole fleet and belong to `_admin`. A tenant may have several keys for its data: the one with the highest number
-- seals, all of them open. `master_id` names the master key that wraps the row's key. A row never changes but by being wrapped
-- anew, and goes only with its tenant.
create table sealing_keys (
  tenant text not null,
  purpose text not null,
  number integer not null,
  master_id text not null,
  wrapped bytea not null,
  created_at timestamptz not null default deedbox_now(),
  wrapped_at timestamptz not null default deedbox_now(),
  constraint sealing_keys_pkey primary key (tenant, purpose, number),
  constraint sealing_keys_tenant foreign key (tenant) references tenants on delete cascade,
  constraint sealing_keys_purpose check (purpose = 'data' or tenant = '_admin' and purpose in ('random', 'artefacts', 'digests')),
  constraint sealing_keys_number check (number > 0)
);

-- `secrets.key_id`, `effects.sealed_with`, `effects.lookup_sealed_with` and `request_keys.sealed_with` name the tenant's data key
-- `k` and its number. In rows from before there were data keys they name the master key itself, by 16 hexadecimal digits; those
-- are found by these indexes, and `deedbox key rotate` seals them anew.
create index effects_sealed_by_master on effects (tenant, effect_id)
  where sealed_with not like 'k%' or lookup_sealed_with not like 'k%';
create index request_keys_sealed_by_master on request_keys (tenant, record) where sealed_with not like 'k%';
