//! `/runs/{runId}/effects`: the witness of the OpenWOP profile, one row per send. It shows identities, states and times;
//! never a body, a header or a credential.

use axum::extract::State;
use serde::Serialize;

use super::auth::{Caller, scope};
use super::error::{Problem, Result};
use super::extract::{Json, Path};
use super::time::Time;
use super::{Api, name};
use crate::store::{run, send};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Witness {
    run_id: String,
    effects: Vec<Row>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    effect_id: String,
    node_id: String,
    attempt: i32,
    keying: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    provider_key: Option<String>,
    state: String,
    at: Time,
}

pub async fn show(
    State(api): State<Api>,
    caller: Caller<scope::Read>,
    Path(segment): Path<String>,
) -> Result<Json<Witness>> {
    let unknown = || Problem::not_found("run");
    let bound = unproject(&segment)?;
    let (tenant, opaque) = bound.split_once('/').ok_or_else(unknown)?;
    if tenant != caller.tenant {
        return Err(Problem::tenant_mismatch());
    }
    let run_id = name::uuid(opaque).ok_or_else(unknown)?;
    let run = run::find(&api.store, tenant, run_id).await?.ok_or_else(unknown)?;
    let sends = send::list_of_run(&api.store, tenant, run_id).await?;
    let effects = sends.into_iter().map(|send| row(tenant, &run.activity, send)).collect();
    Ok(Json(Witness { run_id: bound, effects }))
}

fn row(tenant: &str, activity: &str, send: send::Send) -> Row {
    Row {
        effect_id: format!("{tenant}/{}", name::hex(&send.effect_id)),
        node_id: activity.to_owned(),
        attempt: send.attempt,
        state: state(&send).to_owned(),
        keying: send.keying,
        provider_key: send.wire_key,
        at: send.started_at.into(),
    }
}

/// The newest send shows its effect's state; an older one shows what it has learned itself.
fn state(send: &send::Send) -> &str {
    match send.result.as_deref() {
        _ if send.newest => &send.state,
        Some("answered") => "completed",
        Some("not-applied") => "released",
        _ => "claimed",
    }
}

/// Undoes the path projection of an id: `~HH` stands for a byte, in upper-case hexadecimal digits. No id has a `~` of its
/// own.
fn unproject(segment: &str) -> Result<String> {
    let wrong = || Problem::validation("runId: each ~ must be followed by two upper-case hexadecimal digits");
    let mut parts = segment.split('~');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.as_bytes().split_at_checked(2).ok_or_else(wrong)?;
        bytes.extend(data_encoding::HEXUPPER.decode(digits).map_err(|_| wrong())?);
        bytes.extend_from_slice(rest);
    }
    String::from_utf8(bytes).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_projected_id_is_read_back() {
        assert_eq!(unproject("acme~2Fr-9f3c").unwrap(), "acme/r-9f3c");
        assert_eq!(unproject("acme/r-9f3c").unwrap(), "acme/r-9f3c");
        assert_eq!(unproject("~C3~A4~2F").unwrap(), "ä/");
        for wrong in ["acme~", "acme~2", "acme~2f", "acme~zz", "~~2F", "~FF", "~ä"] {
            assert!(unproject(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_older_send_shows_what_it_learned() {
        let mut send = send::Send {
            effect_id: vec![0; 32],
            send: 1,
            run_id: Uuid::nil(),
            attempt: 1,
            started_at: DateTime::UNIX_EPOCH,
            ended_at: None,
            result: None,
            status: None,
            keying: "activity-recipe".to_owned(),
            wire_key: None,
            state: "escaped".to_owned(),
            newest: true,
        };
        assert_eq!(state(&send), "escaped");
        send.newest = false;
        let learned = [
            (None, "claimed"),
            (Some("unknown"), "claimed"),
            (Some("in-flight"), "claimed"),
            (Some("not-applied"), "released"),
            (Some("answered"), "completed"),
        ];
        for (result, shown) in learned {
            send.result = result.map(str::to_owned);
            assert_eq!(state(&send), shown, "{result:?}");
        }
    }
}
