//! `/v1/secrets`: credentials for providers. They can be put, named and deleted, never read.

use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::Api;
use super::auth::Caller;
use super::error::{Problem, Result};
use super::extract::{Json, Path};
use super::name;
use super::page::Page;
use super::time::Time;
use crate::store;

const LONGEST_VALUE: usize = 8192;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Put {
    value: String,
}

#[derive(Serialize)]
pub struct Name {
    name: String,
    updated_at: Time,
}

pub async fn put(
    State(api): State<Api>,
    caller: Caller,
    Path(name): Path<String>,
    Json(body): Json<Put>,
) -> Result<StatusCode> {
    let value = Zeroizing::new(body.value);
    name::check("secret name", &name)?;
    check_value(&value)?;
    api.gateway.vault().put(&caller.tenant, &name, &value).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub async fn list(State(api): State<Api>, caller: Caller) -> Result<Json<Page<Name>>> {
    let rows = store::secret::list(&api.store, &caller.tenant).await?;
    let view = |row: store::secret::Name| Name { name: row.name, updated_at: row.updated_at.into() };
    Ok(Json(Page::whole(rows.into_iter().map(view).collect())))
}

pub async fn delete(State(api): State<Api>, caller: Caller, Path(name): Path<String>) -> Result<StatusCode> {
    let unknown = || Problem::not_found("secret");
    name::check("secret name", &name).map_err(|_| unknown())?;
    match store::secret::delete(&api.store, &caller.tenant, &name).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(unknown()),
    }
}

/// A value goes into a header: nothing may be in it that no header may have.
fn check_value(value: &str) -> Result<()> {
    if (1..=LONGEST_VALUE).contains(&value.len()) && value.bytes().all(|c| (b' '..=b'~').contains(&c)) {
        return Ok(());
    }
    Err(Problem::validation(format!("value: must be 1 to {LONGEST_VALUE} visible ASCII characters or spaces")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_fits_into_a_header() {
        assert!(check_value("sk_test_ ~!").is_ok() && check_value(&"x".repeat(8192)).is_ok());
        for wrong in ["", "a\nb", "a\0", "ä", "\u{7f}", &"x".repeat(8193)] {
            assert!(check_value(wrong).is_err(), "{wrong}");
        }
    }
}
