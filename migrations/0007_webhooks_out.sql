-- Webhooks out: a run may have one callback, a request that tells of its end.

-- So that the end of a run without a callback costs one look at its own row.
alter table runs add column has_callback boolean not null default false;

-- `pending`: the run has not ended. `due`: it has, and nobody has taken the message yet; then `delivered` or `failed`.
-- `webhook_id` names the end that is told of: the same in every try, another when the run is begun again and ends again.
-- `ended_at` is that end. `since` is when the message became due: the time for tries is counted from there. `due_at` is the
-- next try, and, while one is under way, the end of its lease; `lease` names who took it. `secret` is the secret's name.
-- `tries` counts tries begun.
create table callbacks (
  tenant text not null,
  run_id uuid not null,
  url text not null,
  secret text not null,
  state text not null default 'pending',
  ends integer not null default 0,
  webhook_id text,
  ended_at timestamptz,
  since timestamptz,
  due_at timestamptz,
  lease uuid,
  tries integer not null default 0,
  last_status integer,
  last_error text,
  delivered_at timestamptz,
  created_at timestamptz not null default deedbox_now(),
  constraint callbacks_pkey primary key (tenant, run_id),
  constraint callbacks_run foreign key (tenant, run_id) references runs on delete cascade,
  constraint callbacks_state check (state in ('pending', 'due', 'delivered', 'failed')),
  constraint callbacks_due_at check ((state = 'due') = (due_at is not null)),
  constraint callbacks_lease check (lease is null or state = 'due'),
  constraint callbacks_message check (state = 'pending' or (webhook_id is not null and ended_at is not null and since is not null)),
  constraint callbacks_delivered check (state <> 'delivered' or delivered_at is not null)
);

create index callbacks_due on callbacks (tenant, due_at) where due_at is not null;
create index callbacks_taken on callbacks (since) where lease is not null;
create index callbacks_newest on callbacks (tenant, created_at, run_id);
create index callbacks_failed on callbacks (tenant, created_at, run_id) where state = 'failed';

-- However a run ends, its message becomes due in the same transaction; and when it is begun again, an end that was not told yet
-- is told no more.
create function deedbox_callback_of_end() returns trigger language plpgsql as $$
begin
  if new.ended_at is null then
    update callbacks
    set state = 'pending', due_at = null, lease = null
    where tenant = new.tenant and run_id = new.run_id;
  else
    update callbacks
    set state = 'due', ends = ends + 1,
        webhook_id = 'msg_' || replace(run_id::text, '-', '') || '_' || (ends + 1),
        ended_at = new.ended_at, since = deedbox_now(), due_at = deedbox_now(), lease = null, tries = 0,
        last_status = null, last_error = null, delivered_at = null
    where tenant = new.tenant and run_id = new.run_id;
  end if;
  return null;
end $$;

create trigger runs_callback after update of ended_at on runs
  for each row when (new.has_callback and (old.ended_at is null) <> (new.ended_at is null))
  execute function deedbox_callback_of_end();
