-- What happened to runs, for those who follow them. Triggers write it, so that no statement can forget. A row is written by
-- the transaction that it tells of, and goes when its run goes.

-- The place of an event in the order in which events are told. Two things must hold: a transaction that commits late is not
-- passed over, and the events of a run are told in the order in which they happened. `turn` is the later of two numbers: the
-- transaction's own, and the newest that had ended when the row was written. Events are read by (turn, event_id), and only
-- those whose turn is below every transaction that is still open:
--  - whoever is still to commit has a number, and so a turn, that is not below: nothing is passed over;
--  - where one transaction had to wait for another, as two that change one run must, its turn is not below the other's, and
--    its `event_id` is above. Its own number alone would not do: it may be older than the one that it waited for.
-- Volatile, so that it looks when the row is written, after the lock on the run's row was given.
create function deedbox_turn() returns bigint
  language sql volatile
  as $$
    select greatest(pg_current_xact_id()::text::bigint, pg_snapshot_xmax(pg_current_snapshot())::text::bigint - 1)
  $$;

-- `data` is a JSON text. Never what a guest, a caller or a provider said: no input, output, payload or message.
--
-- There is no foreign key to `runs`: its check would lock the run's row. Who settles an effect holds the effect's row, and
-- who takes a lost run back holds the run's row and goes for its effects: the two would wait for each other. No row is left
-- behind: a run is swept only when all its effects are settled.
create table events (
  tenant text not null,
  run_id uuid not null,
  turn bigint not null default deedbox_turn(),
  event_id bigint generated always as identity,
  kind text not null,
  data text not null default '{}',
  at timestamptz not null default deedbox_now(),
  constraint events_pkey primary key (tenant, run_id, turn, event_id),
  constraint events_kind check (kind in (
    'run.queued', 'run.started', 'run.waiting', 'run.completed', 'run.failed', 'run.cancelled', 'run.cancelling',
    'run.paused', 'run.resumed', 'signal.received', 'effect.escaped', 'effect.resolved', 'effect.doubled'))
);

create unique index events_order on events (tenant, turn, event_id);

-- Times as the API shows them.
create function deedbox_time(at timestamptz) returns text
  language sql stable parallel safe
  as $$ select to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') $$;

-- The code of a failure. The text may have escapes that PostgreSQL refuses to read, and that must not keep a run from
-- ending: it is not parsed. The host writes the code first.
create function deedbox_code(failure text) returns text
  language sql immutable parallel safe
  as $$ select substring(failure from '^\{"code":"([^"\\]*)"') $$;

create function deedbox_told_of(run runs) returns text
  language sql stable
  as $$
    select case
      when run.state = 'running' then '{"attempt":' || run.attempts || '}'
      -- Of a paused run that is ready, `due_at` only says so.
      when run.state = 'queued' and run.due_at is not null and run.paused_at is null
        then json_strip_nulls(json_build_object('due_at', deedbox_time(run.due_at)))::text
      when run.state = 'waiting'
        then json_strip_nulls(json_build_object('effect_id', encode(run.waiting_effect, 'hex'),
               'signal', run.waiting_signal, 'due_at', deedbox_time(run.due_at)))::text
      when run.state = 'failed'
        then json_strip_nulls(json_build_object('code', deedbox_code(run.failure)))::text
      else '{}' end
  $$;

-- What a run's owner wishes is told before what became of the run.
create function deedbox_run_changed() returns trigger language plpgsql volatile as $$
begin
  if tg_op = 'UPDATE' then
    if old.cancel_requested_at is null and new.cancel_requested_at is not null and new.ended_at is null then
      insert into events (tenant, run_id, kind) values (new.tenant, new.run_id, 'run.cancelling');
    end if;
    -- A failed run that is begun again only forgets that it was paused.
    if (old.paused_at is null) <> (new.paused_at is null) and old.ended_at is null then
      insert into events (tenant, run_id, kind)
      values (new.tenant, new.run_id, case when new.paused_at is null then 'run.resumed' else 'run.paused' end);
    end if;
    if new.state = old.state and new.token = old.token then
      return null;
    end if;
  end if;
  insert into events (tenant, run_id, kind, data)
  values (new.tenant, new.run_id, 'run.' || case new.state when 'running' then 'started' else new.state end,
          deedbox_told_of(new));
  return null;
end $$;

create trigger runs_begin after insert on runs for each row execute function deedbox_run_changed();

-- Row by row, because only then the condition is looked at before anything is kept for the trigger: renewals, the most
-- frequent changes of all, cost nothing.
create trigger runs_change after update on runs for each row
  when (new.state <> old.state or new.token <> old.token or (new.paused_at is null) <> (old.paused_at is null)
        or (new.cancel_requested_at is null) <> (old.cancel_requested_at is null))
  execute function deedbox_run_changed();

create function deedbox_runs_gone() returns trigger language plpgsql volatile as $$
begin
  delete from events e using gone where e.tenant = gone.tenant and e.run_id = gone.run_id;
  return null;
end $$;

create trigger runs_end after delete on runs referencing old table as gone
  for each statement execute function deedbox_runs_gone();

create function deedbox_signal_came() returns trigger language plpgsql volatile as $$
begin
  insert into events (tenant, run_id, kind, data)
  values (new.tenant, new.run_id, 'signal.received',
          json_strip_nulls(json_build_object('name', new.name, 'sequence', new.sequence))::text);
  return null;
end $$;

create trigger signals_come after insert on signals for each row execute function deedbox_signal_came();

-- Told to the run that holds the effect. A business effect may outlive that run.
create function deedbox_effect_changed() returns trigger language plpgsql volatile as $$
declare
  kinds text[] := '{}';
begin
  if (new.state = 'escaped') <> (old.state = 'escaped') then
    kinds := kinds || case new.state when 'escaped' then 'effect.escaped' else 'effect.resolved' end;
  end if;
  if new.doubled and not old.doubled then
    kinds := kinds || 'effect.doubled'::text;
  end if;
  insert into events (tenant, run_id, kind, data)
  select r.tenant, r.run_id, k.kind,
         json_strip_nulls(json_build_object('effect_id', encode(new.effect_id, 'hex'), 'provider', new.provider,
           'state', case k.kind when 'effect.resolved' then new.state end))::text
  from runs r, unnest(kinds) with ordinality k (kind, place)
  where r.tenant = new.tenant and r.run_id = new.holder_run order by k.place;
  return null;
end $$;

create trigger effects_change after update on effects for each row
  when ((new.state = 'escaped') <> (old.state = 'escaped') or new.doubled <> old.doubled)
  execute function deedbox_effect_changed();
