-- Where code comes from: who brought a module and who deployed a version, and the signatures of modules. Tokens are named by
-- id and label and not referred to: what was recorded stays when a token is gone. `by_kind` is `unknown` for what was there before.

alter table modules
  add column by_kind text not null default 'unknown',
  add column by_token uuid,
  add column by_label text,
  add constraint modules_by_kind check (by_kind in ('token', 'operator', 'unknown')),
  add constraint modules_by_token check ((by_kind = 'token') = (by_token is not null) and (by_label is null or by_kind = 'token'));

-- `signer` and `signer_key` are of the signature that the deployment was made under: null when there was none that counted.
alter table activity_versions
  add column by_kind text not null default 'unknown',
  add column by_token uuid,
  add column by_label text,
  add column signer text,
  add column signer_key bytea,
  add constraint activity_versions_by_kind check (by_kind in ('token', 'operator', 'unknown')),
  add constraint activity_versions_by_token
    check ((by_kind = 'token') = (by_token is not null) and (by_label is null or by_kind = 'token')),
  add constraint activity_versions_signer check ((signer is null) = (signer_key is null));

-- Deployments of the tenant need a signature.
alter table tenants add column require_signature boolean not null default false;

-- The public keys (Ed25519) whose signatures count for a tenant. Administrators keep them.
create table signers (
  tenant text not null,
  signer text not null,
  public_key bytea not null,
  created_at timestamptz not null default deedbox_now(),
  by_token uuid not null,
  by_label text not null,
  constraint signers_pkey primary key (tenant, signer),
  constraint signers_key unique (tenant, public_key),
  constraint signers_tenant foreign key (tenant) references tenants on delete cascade,
  constraint signers_public_key check (octet_length(public_key) = 32)
);

-- Signatures that were found to be good, one for each key. A signature counts while its key is among the signers; it is kept
-- when the key is taken away. `signer` is the key's name when the signature was attached.
create table module_signatures (
  tenant text not null,
  digest bytea not null,
  public_key bytea not null,
  signer text not null,
  signature bytea not null,
  attached_at timestamptz not null default deedbox_now(),
  by_token uuid not null,
  by_label text not null,
  constraint module_signatures_pkey primary key (tenant, digest, public_key),
  constraint module_signatures_module foreign key (tenant, digest) references modules on delete cascade,
  constraint module_signatures_signature check (octet_length(signature) = 64)
);
