//! Many who send at once: nothing is lost, nothing is doubled, and each sender's order is kept. Contention is nobody's
//! fault, so nobody is told of one.

use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{KEY, deliver, idle, listener, signals_of, taken, with};

const CLIENTS: usize = 20;
const EACH: usize = 50;

fn key(client: usize, n: usize) -> String {
    format!("client-{client:0>8}-signal-{n:0>8}")
}

/// F-D04.
#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_signals_of_twenty_clients_are_all_read_in_each_clients_order() {
    let api = with(|config| config.signals.wait_ms = 2_000).await;
    api.deploy("read-all", json!({ "timeouts": { "start_to_close": "5m" } })).await;
    let run = api.start("read-all", json!({ "name": "n", "signals": CLIENTS * EACH })).await;
    api.begin_working();
    let mut clients = JoinSet::new();
    for client in 0..CLIENTS {
        let (acme, run) = (api.acme.clone(), run.clone());
        clients.spawn(async move {
            for n in 0..EACH {
                taken(&deliver(&acme, &run, "n", Some(&key(client, n)), &json!([client, n])).await, true);
            }
        });
    }
    clients.join_all().await;
    let ended = api.ended(&run).await;
    assert_eq!(ended["state"], "completed", "{}", ended["failure"]);
    let read: Vec<(usize, usize)> = ended["output"].as_array().unwrap().iter().map(pair).collect();
    assert_eq!(read.len(), CLIENTS * EACH);
    for client in 0..CLIENTS {
        let own: Vec<usize> = read.iter().filter(|(from, _)| *from == client).map(|(_, n)| *n).collect();
        assert_eq!(own, (0..EACH).collect::<Vec<_>>(), "of client {client}");
    }
}

fn pair(payload: &Value) -> (usize, usize) {
    let number = |at: usize| usize::try_from(payload[at].as_u64().unwrap()).unwrap();
    (number(0), number(1))
}

/// F-I01.
#[tokio::test(flavor = "multi_thread")]
async fn of_many_deliveries_of_one_key_at_once_one_is_the_first() {
    let api = idle().await;
    let run = listener(&api).await;
    let mut senders = JoinSet::new();
    for n in 0..30 {
        let (acme, run) = (api.acme.clone(), run.clone());
        senders.spawn(async move { deliver(&acme, &run, "go", Some(KEY), &json!(n)).await });
    }
    let answers = senders.join_all().await;
    let first = answers.iter().filter(|answer| answer.expect(202)["signal_delivered"] == true);
    assert_eq!((answers.len(), first.count()), (30, 1));
    let listed = signals_of(&api, &run).await;
    assert_eq!(listed.len(), 1);
    api.work().await;
    assert_eq!(api.ended(&run).await["output"], json!([listed[0]["payload"]]));
}

/// F-I13. Also where a database makes every transaction serializable unless it is told otherwise.
#[tokio::test(flavor = "multi_thread")]
async fn contention_on_one_run_fails_nobody_whatever_the_databases_default_isolation() {
    let world = crate::harness::World::keyed().await;
    let default = "do $$ begin
      execute format('alter database %I set default_transaction_isolation to serializable', current_database());
    end $$";
    world.database.execute(default).await;
    let shown: String = sqlx::query_scalar("show default_transaction_isolation")
        .fetch_one(&mut world.database.connect().await)
        .await
        .unwrap();
    assert_eq!(shown, "serializable");
    let worker =
        crate::harness::node(&world.database, "worker", crate::harness::config(), deedbox::probe::none()).await;
    let api = super::Api::with(world, crate::harness::config()).await;
    api.deploy("read-all", json!({})).await;
    let run = api.start("read-all", json!({ "name": "n", "signals": 50 })).await;
    tokio::spawn(worker.worker().clone().run(api.stop.clone()));
    let mut senders = JoinSet::new();
    for n in 0..100 {
        let (acme, run) = (api.acme.clone(), run.clone());
        // Each key twice.
        senders.spawn(async move { deliver(&acme, &run, "n", Some(&key(0, n / 2)), &json!([0, n / 2])).await });
    }
    let answers = senders.join_all().await;
    let first = answers.iter().filter(|answer| answer.expect(202)["signal_delivered"] == true);
    assert_eq!((answers.len(), first.count()), (100, 50));
    let ended = api.ended(&run).await;
    assert_eq!(ended["state"], "completed", "{}", ended["failure"]);
    let mut read: Vec<usize> = ended["output"].as_array().unwrap().iter().map(|payload| pair(payload).1).collect();
    read.sort_unstable();
    assert_eq!(read, (0..50).collect::<Vec<_>>());
}
