//! `GET /runs/{runId}/effects`: the witness, one row per send. It shows identities, states and times; never a body, a
//! header or a credential.

use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::ids;
use crate::api::auth::{Caller, scope};
use crate::api::error::Result;
use crate::api::extract::{Json, Path};
use crate::api::time::Time;
use crate::api::{Api, name};
use crate::store::{run, send};

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = OpenwopSends)]
pub struct Witness {
    run_id: String,
    effects: Vec<Row>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = OpenwopSend)]
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

/// Lists the sends of a run, each with the identity of its effect.
#[utoipa::path(
    get, path = "/runs/{run}/effects", operation_id = "openwop_list_sends", tag = "openwop",
    responses((status = 200, body = Witness)), security(("bearer" = ["read"]))
)]
pub async fn show(
    State(api): State<Api>,
    caller: Caller<scope::Read>,
    Path(segment): Path<String>,
) -> Result<Json<Witness>> {
    let tenant = &caller.tenant;
    let run_id = ids::run(&segment, tenant)?;
    let run = run::find(&api.store, tenant, run_id).await?.ok_or_else(ids::unknown)?;
    let sends = send::list_of_run(&api.store, tenant, run_id).await?;
    let effects = sends.into_iter().map(|send| row(tenant, &run.activity, send)).collect();
    Ok(Json(Witness { run_id: ids::bound(tenant, run_id), effects }))
}

fn row(tenant: &str, activity: &str, send: send::Send) -> Row {
    Row {
        effect_id: ids::bound(tenant, name::hex(&send.effect_id)),
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

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use uuid::Uuid;

    use super::*;

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
