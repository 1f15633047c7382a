-- Webhooks in: which deliveries a tenant takes, and what became of the last of them.

-- `config` is the JSON text that the tenant has put. `secrets` are the names in it, so that one statement finds a hook together
-- with what its signatures are checked with.
create table hooks (
  tenant text not null,
  hook text not null,
  secrets text[] not null,
  config text not null,
  created_at timestamptz not null default deedbox_now(),
  updated_at timestamptz not null default deedbox_now(),
  constraint hooks_pkey primary key (tenant, hook),
  constraint hooks_tenant foreign key (tenant) references tenants on delete cascade,
  constraint hooks_name check (hook ~ '^[A-Za-z0-9_-]{1,64}$')
);

-- The last deliveries of each hook that were signed and wanted, one row for each delivery id; never a body, a header or a
-- signature. `delivery_id` is empty where the delivery had none. `tries` counts how often something came of it: a delivery that
-- is sent again after a refusal is the same row.
create table hook_deliveries (
  tenant text not null,
  hook text not null,
  delivery_id text not null,
  outcome text not null,
  run_id uuid,
  reason text,
  tries integer not null default 1,
  last_at timestamptz not null default deedbox_now(),
  constraint hook_deliveries_pkey primary key (tenant, hook, delivery_id),
  constraint hook_deliveries_hook foreign key (tenant, hook) references hooks on delete cascade,
  constraint hook_deliveries_outcome check (outcome in ('accepted', 'declined', 'refused'))
);

create index hook_deliveries_newest on hook_deliveries (tenant, hook, last_at);
