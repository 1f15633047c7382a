-- What an attempt has used, beside its memory: null for one whose worker was lost, or that ended before this migration.
alter table attempts
  add column cpu_ms bigint,
  add column host_calls bigint;

-- What bounds each attempt of a tenant, beside its memory and its time. Null is no limit.
alter table tenants
  add column max_cpu_ms bigint,
  add column max_host_calls bigint,
  add column max_host_calls_per_s bigint,
  add column max_log_bytes bigint,
  add column max_output_bytes bigint,
  add column max_open_sends bigint,
  add constraint tenants_max_cpu_ms check (max_cpu_ms > 0),
  add constraint tenants_max_host_calls check (max_host_calls > 0),
  add constraint tenants_max_host_calls_per_s check (max_host_calls_per_s > 0),
  add constraint tenants_max_log_bytes check (max_log_bytes > 0),
  add constraint tenants_max_output_bytes check (max_output_bytes > 0),
  add constraint tenants_max_open_sends check (max_open_sends > 0);
