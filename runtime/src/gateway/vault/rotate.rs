//! Replacing master keys: wraps every key with the current one, and seals anew with data keys what a master key has sealed itself.
//! Each step is one row that is compared and replaced, so that it can be broken off, done again, and done beside working nodes.

use data_encoding::BASE64;

use super::data_key::DataKey;
use super::{Error, Vault};
use crate::store::reseal::{self, OldAnswer, OldEffect, OldSecret};
use crate::store::sealing_key::{self, Wrapped};
use crate::store::secret::Sealed;
use crate::store::tenant;

const BATCH: i64 = 100;

/// Where the body of an answer to a request is sealed.
pub const ANSWER_PLACE: &str = "answer to a request";

/// What came of a rotation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rotated {
    /// Keys that the current master key wraps now.
    pub rewrapped: u64,
    /// Values that a data key seals now.
    pub resealed: u64,
    /// Values that could not be opened, with the reason. They stay as they are.
    pub left: Vec<String>,
}

impl Vault {
    /// Wraps and seals anew all that is not the current keys'. Doing it again finds nothing left to do.
    pub async fn rotate(&self) -> Result<Rotated, Error> {
        let mut done = Rotated::default();
        self.rewrap(&mut done).await?;
        self.reseal(tenant::ADMIN, &mut done).await?;
        let mut after: Option<String> = None;
        loop {
            let tenants = tenant::list(self.keys.store(), after.as_deref(), BATCH).await?;
            for tenant in &tenants {
                self.reseal(tenant, &mut done).await?;
            }
            match tenants.into_iter().next_back() {
                Some(last) => after = Some(last),
                None => return Ok(done),
            }
        }
    }

    async fn rewrap(&self, done: &mut Rotated) -> Result<(), Error> {
        let (store, masters) = (self.keys.store(), self.keys.masters());
        let current = masters.current();
        let mut after: Option<Wrapped> = None;
        loop {
            let rows = sealing_key::wrapped_by_others(store, &current.id(), after.as_ref(), BATCH).await?;
            for row in &rows {
                match masters.unwrapped(row) {
                    Ok(key) => {
                        let wrapped = current.wrap(&row.tenant, &row.purpose, row.number, &key);
                        done.rewrapped += u64::from(sealing_key::rewrap(store, &row.tenant, &wrapped, row).await?);
                    }
                    Err(error) => done.left.push(error.to_string()),
                }
            }
            match rows.into_iter().next_back() {
                Some(last) => after = Some(last),
                None => return Ok(()),
            }
        }
    }

    async fn reseal(&self, tenant: &str, done: &mut Rotated) -> Result<(), Error> {
        let store = self.keys.store();
        let mut after: Option<String> = None;
        loop {
            let rows = reseal::secrets(store, tenant, after.as_deref(), BATCH).await?;
            for row in &rows {
                note(self.reseal_secret(tenant, row).await, done)?;
            }
            let Some(last) = rows.into_iter().next_back() else { break };
            after = Some(last.name);
        }
        let mut after: Option<Vec<u8>> = None;
        loop {
            let rows = reseal::effects(store, tenant, after.as_deref(), BATCH).await?;
            for row in &rows {
                note(self.reseal_answer(tenant, row).await, done)?;
                note(self.reseal_lookup(tenant, row).await, done)?;
            }
            let Some(last) = rows.into_iter().next_back() else { break };
            after = Some(last.effect_id);
        }
        let mut after: Option<Vec<u8>> = None;
        loop {
            let rows = reseal::answers(store, tenant, after.as_deref(), BATCH).await?;
            for row in &rows {
                note(self.reseal_answer_to_request(tenant, row).await, done)?;
            }
            let Some(last) = rows.into_iter().next_back() else { return Ok(()) };
            after = Some(last.record);
        }
    }

    async fn reseal_secret(&self, tenant: &str, row: &OldSecret) -> Result<bool, Error> {
        let old = Sealed { key_id: row.key_id.clone(), sealed: row.sealed.clone() };
        let value = self.open_sealed(tenant, &row.name, &old).await?;
        let new = self.current(tenant).await?.seal_secret(&row.name, &value);
        Ok(reseal::put_secret(self.keys.store(), tenant, row, &new).await?)
    }

    async fn reseal_answer(&self, tenant: &str, row: &OldEffect) -> Result<bool, Error> {
        let Some(old) = row.sealed_with.as_deref().filter(|id| is_masters(id)) else { return Ok(false) };
        let key = self.current(tenant).await?;
        let id = &row.effect_id;
        let headers = match &row.headers {
            Some(text) => Some(self.text_anew(tenant, id, "headers", old, text, &key).await?),
            None => None,
        };
        let body = match &row.body {
            Some(body) => {
                let body = self.unseal(tenant, id, "body", old, body).await?;
                Some(key.seal(id, "body", &body))
            }
            None => None,
        };
        let store = self.keys.store();
        Ok(reseal::put_answer(store, tenant, row, &key.id(), headers.as_deref(), body.as_deref()).await?)
    }

    async fn reseal_lookup(&self, tenant: &str, row: &OldEffect) -> Result<bool, Error> {
        let Some(old) = row.lookup_sealed_with.as_deref().filter(|id| is_masters(id)) else { return Ok(false) };
        let key = self.current(tenant).await?;
        let lookup = match &row.lookup {
            Some(text) => Some(self.text_anew(tenant, &row.effect_id, "lookup", old, text, &key).await?),
            None => None,
        };
        Ok(reseal::put_lookup(self.keys.store(), tenant, row, &key.id(), lookup.as_deref()).await?)
    }

    async fn reseal_answer_to_request(&self, tenant: &str, row: &OldAnswer) -> Result<bool, Error> {
        let Some(old) = row.sealed_with.as_deref().filter(|id| is_masters(id)) else { return Ok(false) };
        let key = self.current(tenant).await?;
        let body = match &row.body {
            Some(body) => {
                let body = self.unseal(tenant, &row.record, ANSWER_PLACE, old, body).await?;
                Some(key.seal(&row.record, ANSWER_PLACE, &body))
            }
            None => None,
        };
        Ok(reseal::put_answer_to_request(self.keys.store(), tenant, row, &key.id(), body.as_deref()).await?)
    }

    /// A sealed text in base64, sealed anew.
    async fn text_anew(
        &self,
        tenant: &str,
        id: &[u8],
        place: &str,
        old: &str,
        text: &str,
        key: &DataKey,
    ) -> Result<String, Error> {
        let tampered = |_| Error::Tampered(format!("the {place} of an effect"));
        let sealed = BASE64.decode(text.as_bytes()).map_err(tampered)?;
        let opened = self.unseal(tenant, id, place, old, &sealed).await?;
        Ok(BASE64.encode(&key.seal(id, place, &opened)))
    }
}

fn is_masters(key_id: &str) -> bool {
    super::data_key::number_of(key_id).is_none()
}

/// A value that cannot be opened must not keep others from being sealed anew; a failing database ends the rotation.
fn note(result: Result<bool, Error>, done: &mut Rotated) -> Result<(), Error> {
    match result {
        Ok(put) => done.resealed += u64::from(put),
        Err(Error::Store(error)) => return Err(error.into()),
        Err(error) => done.left.push(error.to_string()),
    }
    Ok(())
}
