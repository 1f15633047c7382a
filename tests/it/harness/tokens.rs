//! Tokens that tests make past the API.

use deedbox::store::tenant::ADMIN;
use deedbox::store::token::{Expiry, NewToken};
use deedbox::store::{self, Store};
use deedbox::token::{self, Scope};

/// A token with all that its owner's tokens may have, for ever; its text.
pub async fn mint(store: &Store, owner: &str) -> String {
    mint_for(store, owner, Scope::of(owner == ADMIN)).await
}

/// A token with these scopes.
pub async fn mint_for(store: &Store, owner: &str, scopes: &[Scope]) -> String {
    let (token_id, text, secret_hash) = token::mint(owner);
    let (scopes, label) = (Scope::names(scopes), "a test".to_owned());
    let new = NewToken { token_id, secret_hash, label, scopes, expiry: Expiry::Never };
    store::token::create(store, owner, &new).await.unwrap();
    text
}
