//! The order of events under transactions that overlap: one that commits late is not passed over, and what happened later
//! is told later.

use serde_json::json;
use sqlx::PgConnection;

use super::{Api, PLAIN, Reader, all_of, command, ids, kinds, page, path};

async fn say(connection: &mut PgConnection, sql: &str) {
    sqlx::raw_sql(sqlx::AssertSqlSafe(sql.to_owned())).execute(connection).await.unwrap();
}

/// Another run like the one that is there.
const ANOTHER: &str = "insert into runs (tenant, run_id, activity, version, state, input, retry, max_attempts)
     select tenant, gen_random_uuid(), activity, version, 'queued', input, retry, max_attempts from runs limit 1";

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_commits_late_is_not_passed_over() {
    let api = Api::idle().await;
    api.deploy("noop", json!({})).await;
    let first = api.start("noop", json!(1)).await;
    let mut stream = Reader::open(&api.acme, "/v1/events?from=oldest", None).await;
    assert_eq!(stream.one().await.body["run_id"], json!(first));

    let mut late = api.world.database.connect().await;
    say(&mut late, "begin").await;
    say(&mut late, ANOTHER).await;
    let second = api.start("noop", json!(2)).await;
    let told = page(&api.acme, "/v1/events?from=oldest").await;
    assert_eq!(told["items"].as_array().unwrap().len(), 1, "what comes behind an open transaction waits: {told}");
    say(&mut late, "commit").await;
    let (late, after) = (stream.one().await, stream.one().await);
    assert!(late.body["run_id"] != json!(first) && late.body["run_id"] != json!(second), "{late:?}");
    assert_eq!(after.body["run_id"], json!(second));
}

/// The transaction of the later change is the older one: it had begun, and then waited.
#[tokio::test(flavor = "multi_thread")]
async fn a_runs_events_are_told_as_they_happened_whichever_transaction_began_first() {
    let api = Api::idle().await;
    api.deploy("noop", json!({})).await;
    let run = api.start("noop", json!(1)).await;
    let mut old = api.world.database.connect().await;
    say(&mut old, "begin; select pg_current_xact_id()").await;
    command(&api.acme, &run, "pause").await;
    command(&api.acme, &run, "resume").await;
    say(&mut old, "update runs set state = 'cancelled', ended_at = deedbox_now(), rank = null; commit").await;
    let events = all_of(&api, &run).await;
    assert_eq!(kinds(&events), ["run.queued", "run.paused", "run.resumed", "run.cancelled"]);
}

/// The end of a run is seen before its event may be told: the stream waits for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_does_not_end_before_the_end_was_told() {
    let api = Api::idle().await;
    api.deploy("noop", json!({})).await;
    let run = api.start("noop", json!(1)).await;
    let mut stream = Reader::open(&api.acme, &path(&run), None).await;
    assert_eq!(stream.one().await.kind, "run.queued");
    let mut open = api.world.database.connect().await;
    say(&mut open, "begin; select pg_current_xact_id()").await;
    api.work().await;
    assert_eq!(api.ended(&run).await["state"], "completed");
    let told = page(&api.acme, &path(&run)).await;
    assert_eq!(told["items"].as_array().unwrap().len(), 1, "{told}");
    let first = told["after"].as_str().unwrap();
    let again = Reader::open(&api.acme, &path(&run), Some(first)).await;
    say(&mut open, "rollback").await;
    assert_eq!(kinds(&stream.rest().await), PLAIN[1..]);
    assert_eq!(kinds(&again.rest().await), PLAIN[1..]);
}

/// Several take up the tenant's stream again and again while runs begin and end: each sees all, once and in one order.
#[tokio::test(flavor = "multi_thread")]
async fn all_who_follow_see_the_same() {
    let api = Api::working().await;
    api.deploy("noop", json!({})).await;
    let runs = 40;
    let starting = async {
        for n in 0..runs {
            api.start("noop", json!(n)).await;
        }
    };
    let steady = async {
        let mut stream = Reader::open(&api.acme, "/v1/events?from=oldest", None).await;
        let mut seen = Vec::new();
        while seen.len() < runs * PLAIN.len() {
            seen.push(stream.one().await);
        }
        seen
    };
    let restless = async {
        let mut seen = Vec::new();
        let mut last: Option<String> = None;
        while seen.len() < runs * PLAIN.len() {
            let mut stream = Reader::open(&api.acme, "/v1/events?from=oldest", last.as_deref()).await;
            seen.extend([stream.one().await, stream.one().await].into_iter().take(runs * PLAIN.len() - seen.len()));
            last = stream.last;
        }
        seen
    };
    let ((), steady, restless) = tokio::join!(starting, steady, restless);
    assert_eq!(ids(&steady), ids(&restless));
    for run in steady.iter().map(|event| &event.body["run_id"]) {
        let own: Vec<&str> =
            steady.iter().filter(|event| event.body["run_id"] == *run).map(|event| event.kind.as_str()).collect();
        assert_eq!(own, PLAIN);
    }
}

/// A dump that is taken to another server has numbers of transactions that are still to come there.
#[tokio::test(flavor = "multi_thread")]
async fn events_of_another_server_are_told_in_their_order_once_the_schema_was_brought_up() {
    let api = Api::idle().await;
    api.deploy("noop", json!({})).await;
    let run = api.start("noop", json!(1)).await;
    api.work().await;
    api.world.database.execute("update events set turn = turn + 1000000000000").await;
    assert_eq!(page(&api.acme, &path(&run)).await["items"], json!([]));
    api.world.node.store().migrate().await.unwrap();
    let events = all_of(&api, &run).await;
    assert_eq!(kinds(&events), PLAIN);
    let id = &events[0].id;
    api.world.node.store().migrate().await.unwrap();
    assert_eq!(kinds(&Reader::open(&api.acme, &path(&run), Some(id)).await.rest().await), PLAIN[1..]);
}

/// Nobody has to migrate what is of this version already: the start of a node looks at the schema.
#[tokio::test(flavor = "multi_thread")]
async fn events_of_another_server_are_told_once_a_node_has_started() {
    let api = Api::idle().await;
    api.deploy("noop", json!({})).await;
    let run = api.start("noop", json!(1)).await;
    api.work().await;
    api.world.database.execute("update events set turn = turn + 1000000000000").await;
    assert_eq!(page(&api.acme, &path(&run)).await["items"], json!([]));
    api.world.node.store().check_schema().await.unwrap();
    assert_eq!(kinds(&all_of(&api, &run).await), PLAIN);
}

/// A database that was restored to an earlier time has not told of this yet.
#[tokio::test(flavor = "multi_thread")]
async fn an_id_from_the_future_is_refused() {
    let api = Api::idle().await;
    api.deploy("noop", json!({})).await;
    let run = api.start("noop", json!(1)).await;
    api.work().await;
    let mut ids = Vec::new();
    for path in [path(&run), "/v1/events?from=oldest".to_owned()] {
        ids.push(page(&api.acme, &path).await["after"].as_str().unwrap().to_owned());
    }
    let future = |id: &str, number: usize| {
        let mut bytes = data_encoding::BASE64URL_NOPAD.decode(id.as_bytes()).unwrap();
        // The turn, by far.
        let turn = &mut bytes[number * 8..][..8];
        let later = u64::from_be_bytes((&*turn).try_into().unwrap()) + (1 << 40);
        turn.copy_from_slice(&later.to_be_bytes());
        data_encoding::BASE64URL_NOPAD.encode(&bytes)
    };
    let request = |path: &str, id: &str| api.acme.request(reqwest::Method::GET, path).header("last-event-id", id);
    let of_run = request(&path(&run), &future(&ids[0], 1));
    api.acme.send(of_run).await.refused(400, "validation_error");
    let of_tenant = request("/v1/events", &future(&ids[1], 0));
    api.acme.send(of_tenant).await.refused(400, "validation_error");
}
