-- What bounds a tenant beside `max_running`. Null is no limit. `egress` is a JSON text: the origins and hosts that its
-- deployments may reach at most.
alter table tenants
  add column max_queued integer,
  add column max_modules integer,
  add column max_module_bytes bigint,
  add column max_memory_bytes bigint,
  add column max_attempt_ms bigint,
  add column max_sends_per_s double precision,
  add column egress text,
  add constraint tenants_max_queued check (max_queued >= 0),
  add constraint tenants_max_modules check (max_modules >= 0),
  add constraint tenants_max_module_bytes check (max_module_bytes >= 0),
  add constraint tenants_max_memory_bytes check (max_memory_bytes > 0),
  add constraint tenants_max_attempt_ms check (max_attempt_ms > 0),
  add constraint tenants_max_sends_per_s check (max_sends_per_s > 0);

-- What counts against `max_queued`: it must be counted without reading what has ended.
create index runs_kept_waiting on runs (tenant, run_id) where state in ('queued', 'waiting');
-- The order in which modules are listed.
create index modules_oldest on modules (tenant, created_at, digest);

-- Whether the tenant has as many runs that wait as it may. While more than 256 places are left, nothing is locked: a tenant would
-- have to write more starts than that in one moment to come above its limit. Below that, starts of the tenant follow each
-- other up to their commit, and the count is exact. Volatile, so that the second count is newer than the lock.
create function deedbox_queue_is_full(of_tenant text) returns boolean
  language plpgsql volatile
  as $$
declare
  unlocked constant integer := 256;
  most integer;
  waiting bigint;
  tries integer := 0;
begin
  select t.max_queued into most from tenants t where t.tenant = of_tenant;
  if most is null then
    return false;
  end if;
  if most > unlocked then
    select count(*) into waiting from (
      select from runs r where r.tenant = of_tenant and r.state in ('queued', 'waiting') limit most - unlocked) counted;
    if waiting < most - unlocked then
      return false;
    end if;
  end if;
  -- A tenant whose starts press on its limit must not hold the connections of others: after a second it is told to come again.
  while not pg_try_advisory_xact_lock(hashtextextended('deedbox queue ' || of_tenant, 0)) loop
    if tries >= 50 then
      return true;
    end if;
    tries := tries + 1;
    perform pg_sleep(0.02);
  end loop;
  select count(*) into waiting from (
    select from runs r where r.tenant = of_tenant and r.state in ('queued', 'waiting') limit most) counted;
  return waiting >= most;
end $$;

-- Whoever looks for a run that is alive must not read all that have ended.
create index runs_alive on runs (tenant, created_at, run_id) where ended_at is null;
create index runs_named_alive on runs (tenant, run_name, created_at) where run_name is not null and ended_at is null;

-- The limit that keeps the tenant from keeping one more module of this size; null: none does, or the module is there already.
-- Uploads of a tenant that has a limit follow each other up to their commit.
create function deedbox_module_limit(of_tenant text, of_digest bytea, size_bytes bigint) returns text
  language plpgsql volatile
  as $$
declare
  bounds record;
  kept record;
begin
  select t.max_modules, t.max_module_bytes into bounds from tenants t where t.tenant = of_tenant;
  if bounds.max_modules is null and bounds.max_module_bytes is null then
    return null;
  end if;
  perform pg_advisory_xact_lock(hashtextextended('deedbox modules ' || of_tenant, 0));
  select count(*) as modules, coalesce(sum(octet_length(m.bytes)), 0) as bytes,
         coalesce(bool_or(m.digest = of_digest), false) as known
    into kept from modules m where m.tenant = of_tenant;
  return case
    when kept.known then null
    when kept.modules >= bounds.max_modules then 'max_modules'
    when kept.bytes + size_bytes > bounds.max_module_bytes then 'max_module_bytes'
  end;
end $$;
