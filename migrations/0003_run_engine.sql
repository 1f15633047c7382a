-- The run engine: fair queues, timers, time-outs, control of runs, signals, rate limits.

-- When a run that is ready may be taken, among the ready runs of its tenant: its age, and a head start of one minute for
-- each step of priority (1 is first, 9 last). So a run of low priority is passed over for minutes, never for ever.
create function deedbox_rank(ready_at timestamptz, priority smallint) returns timestamptz
  language sql stable parallel safe
  as $$ select ready_at + (priority - 1) * interval '1 minute' $$;

-- The state after an attempt: a run whose cancelling was asked for does not go on, and one that has nothing to wait for any
-- more is queued.
create function deedbox_next_state(wanted text, cancel_requested_at timestamptz, ready boolean) returns text
  language sql immutable parallel safe
  as $$
    select case when wanted not in ('queued', 'waiting') then wanted
                when cancel_requested_at is not null then 'cancelled'
                when ready then 'queued'
                else wanted end
  $$;

-- `paused_at`: no attempt begins; those under way end by themselves. `max_running`: runs at once; null is no limit.
alter table tenants
  add column paused_at timestamptz,
  add column max_running integer,
  add constraint tenants_max_running check (max_running >= 0);

alter table activities
  add column paused_at timestamptz,
  add column max_running integer,
  add constraint activities_max_running check (max_running >= 0);

-- A run that is ready has a `rank` and no `due_at`; one that waits for a time has a `due_at` and no `rank`; while it runs,
-- `due_at` is the end of its lease. `start_by` and `close_by` are the ends of `schedule_to_start` and `schedule_to_close`;
-- `deadline_at` is the next of them. `paused_at` and `cancel_requested_at` of a running run are wishes: its worker stops
-- the attempt. `lease_batch` names the statement that leased it, so that a worker which never got that statement's
-- answer can give the runs back. `signals_received` grows with every signal. `labels` is a JSON text.
alter table runs
  add column rank timestamptz,
  add column priority smallint not null default 5,
  add column run_name text,
  add column labels text not null default '{}',
  add column start_by timestamptz,
  add column close_by timestamptz,
  add column deadline_at timestamptz,
  add column paused_at timestamptz,
  add column cancel_requested_at timestamptz,
  add column cancel_reason text,
  add column lease_batch uuid,
  add column waiting_signal text,
  add column signals_received bigint not null default 0,
  add constraint runs_priority check (priority between 1 and 9),
  add constraint runs_ready check (rank is null or (state = 'queued' and due_at is null and paused_at is null)),
  add constraint runs_deadline check (ended_at is null or deadline_at is null);

update runs set rank = deedbox_rank(due_at, priority), due_at = null, state = 'queued'
where due_at <= deedbox_now() and state in ('queued', 'waiting');

drop index runs_due;
create index runs_ready on runs (tenant, activity, rank, run_id) where rank is not null;
-- These three are for the duties that work for all tenants at once.
create index runs_leases on runs (due_at) include (tenant, activity) where state = 'running';
create index runs_timers on runs (due_at) where due_at is not null and state <> 'running' and paused_at is null;
create index runs_deadlines on runs (deadline_at) where deadline_at is not null and state <> 'running';
create index runs_named on runs (tenant, run_name, created_at, run_id) where run_name is not null;

-- A queue's dead rows cost every look at it.
alter table runs set (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000,
  autovacuum_analyze_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 1);

-- How many more runs may begin. The lock lets one statement at a time decide for the tenant or the activity; others are told
-- -1, and look again. Volatile, so that the count is newer than the lock.
create function deedbox_room(of_tenant text, of_activity text, most integer) returns integer
  language plpgsql volatile
  as $$
begin
  if not pg_try_advisory_xact_lock(hashtextextended('deedbox room ' || of_tenant || '/' || coalesce(of_activity, ''), 0))
  then
    return -1;
  end if;
  return greatest(0, most - (
    select count(*) from runs
    where tenant = of_tenant and state = 'running' and (of_activity is null or activity = of_activity)));
end $$;

-- The next lanes (the ready runs of one activity of one tenant) to look at, each with what bounds it: how many runs of the
-- tenant are under way, and how many more may begin of the tenant and of the activity; null is no limit, -1 is "not now". From
-- the tenant where the last look ended, 16 tenants, and 16 lanes of each from where that tenant's last look ended, so that a
-- tenant with a thousand activities takes no more room than another. It steps from lane to lane, whatever the length of each.
create function deedbox_lanes(after_tenant text, seen_tenants text[], seen_activities text[])
  returns table (tenant text, activity text, open boolean, tenant_runs bigint, tenant_room integer, lane_room integer)
  language sql volatile
  as $$
    with recursive ready as (
      (select r.tenant from runs r where r.rank is not null and r.tenant > after_tenant
       order by r.tenant, r.activity limit 1)
      union all
      select next.tenant from ready t cross join lateral (
        select r.tenant from runs r where r.rank is not null and r.tenant > t.tenant
        order by r.tenant, r.activity limit 1) next),
    looked as materialized (
      select t.tenant, coalesce((
               select s.activity from unnest(seen_tenants, seen_activities) s (tenant, activity)
               where s.tenant = t.tenant
                 and exists (select from runs r
                             where r.rank is not null and r.tenant = s.tenant and r.activity > s.activity)), '') as after_activity
      from (select r.tenant from ready r limit 16) t),
    lane as materialized (
      select l.tenant, next.activity from looked l cross join lateral (
        with recursive lanes as (
          (select r.activity from runs r
           where r.rank is not null and r.tenant = l.tenant and r.activity > l.after_activity
           order by r.activity limit 1)
          union all
          select next.activity from lanes a cross join lateral (
            select r.activity from runs r where r.rank is not null and r.tenant = l.tenant and r.activity > a.activity
            order by r.activity limit 1) next)
        select a.activity from lanes a limit 16) next),
    running as materialized (
      select r.tenant, count(*) as runs from runs r where r.state = 'running' group by r.tenant)
    select l.tenant, l.activity, t.paused_at is null and a.paused_at is null, coalesce(u.runs, 0),
           case when t.max_running is not null and t.paused_at is null and a.paused_at is null
             then deedbox_room(l.tenant, null, t.max_running) end,
           case when a.max_running is not null and t.paused_at is null and a.paused_at is null
             then deedbox_room(l.tenant, l.activity, a.max_running) end
    from lane l
    join tenants t on t.tenant = l.tenant
    join activities a on a.tenant = l.tenant and a.activity = l.activity
    left join running u on u.tenant = l.tenant
  $$;

-- The run that a business id stands for now.
create table run_names (
  tenant text not null,
  activity text not null,
  run_name text not null,
  run_id uuid not null,
  constraint run_names_pkey primary key (tenant, activity, run_name),
  constraint run_names_run foreign key (tenant, run_id) references runs on delete cascade deferrable initially deferred
);

create index run_names_run on run_names (tenant, run_id);

create table run_labels (
  tenant text not null,
  label text not null,
  value text not null,
  created_at timestamptz not null,
  run_id uuid not null,
  constraint run_labels_pkey primary key (tenant, label, value, created_at, run_id),
  constraint run_labels_run foreign key (tenant, run_id) references runs on delete cascade
);

create index run_labels_run on run_labels (tenant, run_id);

-- What was delivered to a run, in its order. A key counts once in the life of the run, whatever the signal's name.
create table signals (
  tenant text not null,
  run_id uuid not null,
  sequence bigint not null,
  name text not null,
  payload text not null,
  idempotency_key text,
  received_at timestamptz not null default deedbox_now(),
  read boolean not null default false,
  constraint signals_pkey primary key (tenant, run_id, sequence),
  constraint signals_run foreign key (tenant, run_id) references runs on delete cascade
);

create unique index signals_key on signals (tenant, run_id, idempotency_key) where idempotency_key is not null;
create index signals_unread on signals (tenant, run_id, name, sequence) where not read;

-- What the guest's n-th poll or wait for a name gave, so that every attempt is given the same. `deadline_at` is fixed by
-- the first attempt that waits; `settled_at` is null while the wait is open; `sequence` is null when there was none.
create table signal_reads (
  tenant text not null,
  run_id uuid not null,
  kind text not null,
  name text not null,
  ordinal integer not null,
  deadline_at timestamptz,
  settled_at timestamptz,
  sequence bigint,
  constraint signal_reads_pkey primary key (tenant, run_id, kind, name, ordinal),
  constraint signal_reads_run foreign key (tenant, run_id) references runs on delete cascade,
  constraint signal_reads_kind check (kind in ('poll', 'wait')),
  constraint signal_reads_settled check (sequence is null or settled_at is not null)
);

-- How fast a tenant may send to a provider's account. `next_at` is when the next send is due at an even pace;
-- `deferred_until` is when the last of the runs that were sent away comes back, `blocked_until` is what the provider asked for
-- with Retry-After. `meter` is the provider's profile, or, for hosts that
-- nobody described, the origin.
create table rates (
  tenant text not null,
  meter text not null,
  account text not null,
  next_at timestamptz not null default '-infinity',
  deferred_until timestamptz not null default '-infinity',
  blocked_until timestamptz not null default '-infinity',
  constraint rates_pkey primary key (tenant, meter, account),
  constraint rates_tenant foreign key (tenant) references tenants on delete cascade
);
