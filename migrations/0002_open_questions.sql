-- Open questions: how a provider is asked, who answered, and what a person decided. Also the tenants' own provider
-- profiles, and what retention needs.

-- `lookup` is a JSON text with the whole look-up but the time of the first send; `look_at` is when the resolver asks next.
-- `also` are the headers that go with the key, a JSON text of pairs. `send_again` is a person's leave for one more send.
-- `streamed`: the request's body was larger than the host buffers, so that the digest does not cover it; `body_digest` is
-- the hash of what was sent. `sealed_with` and `lookup_sealed_with` name the keys under which the answer and the look-up
-- are sealed. `swept_at`: the answer of a business effect was
-- dropped after its time; what it is and how it ended stays.
alter table effects
  add column also text,
  add column lookup text,
  add column look_at timestamptz,
  add column looks integer not null default 0,
  add column send_again boolean not null default false,
  add column streamed boolean not null default false,
  add column body_digest bytea,
  add column sealed_with text,
  add column lookup_sealed_with text,
  add column swept_at timestamptz,
  add constraint effects_look_at check (look_at is null or lookup is not null),
  add constraint effects_body_digest check (octet_length(body_digest) = 32);

create index effects_look_at on effects (look_at) where state = 'escaped' and look_at is not null;
create index effects_looked_up on effects (tenant, provider, first_sent_at) where lookup is not null;
create index runs_ended on runs (ended_at) where ended_at is not null;

-- Who settled an open question, when, and why. Rows are only ever added: they outlive the effect.
create table resolutions (
  tenant text not null,
  resolution_id uuid not null,
  effect_id bytea not null,
  resolved_at timestamptz not null default deedbox_now(),
  resolved_by text not null,
  outcome text not null,
  note text not null,
  status integer,
  constraint resolutions_pkey primary key (tenant, effect_id, resolution_id),
  constraint resolutions_tenant foreign key (tenant) references tenants on delete cascade,
  constraint resolutions_outcome check (outcome in ('happened', 'did-not-happen', 'send-again'))
);

create function resolutions_are_kept() returns trigger language plpgsql as $$
begin
  -- A tenant that is deleted takes its rows with it: that deletion comes from within another trigger.
  if tg_op = 'DELETE' and pg_trigger_depth() > 1 then
    return old;
  end if;
  raise exception 'resolutions are append-only' using errcode = 'restrict_violation';
end $$;

create trigger resolutions_append_only before update or delete on resolutions
  for each row execute function resolutions_are_kept();

-- Provider profiles of tenants: their own, or in the place of one that comes with the program.
create table providers (
  tenant text not null,
  provider text not null,
  profile text not null,
  updated_at timestamptz not null default deedbox_now(),
  constraint providers_pkey primary key (tenant, provider),
  constraint providers_tenant foreign key (tenant) references tenants on delete cascade
);
