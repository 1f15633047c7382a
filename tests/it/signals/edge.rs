//! The edge between a signal and the end of a wait: exactly one outcome, and the same in every attempt.

use super::*;

/// A wait ends with its time although nobody works at the run meanwhile, and what comes after that is for another wait.
#[tokio::test(flavor = "multi_thread")]
async fn a_wait_that_is_over_gives_nothing_and_a_late_signal_is_kept() {
    let world = world().await;
    let asks = [wait("go", Some(60_000)), charge(&world, "late"), poll("go")];
    let run = world.start("listen", json!({ "asks": asks, "then": ["fail", "fail", "return"] })).await;
    work_once(&world.node).await;
    let waiting = world.run(run).await;
    assert_eq!(waiting.state, "waiting");
    let until = waiting.due_at.unwrap();
    world.database.advance_seconds(120).await;
    // Received after the end, before anyone looked.
    deliver(&world, run, "go", json!("late")).await;
    work_once(&world.node).await;
    world.work().await;
    let output = world.output(run).await;
    assert_eq!((&output[0], &output[2]), (&Value::Null, &json!("late")), "{output}");
    assert_eq!(world.outcomes(run).await, ["suspended", "failed", "completed"]);
    let recorded: (chrono::DateTime<chrono::Utc>,) =
        sqlx::query_as("select deadline_at from signal_reads where kind = 'wait'")
            .fetch_one(&mut world.database.connect().await)
            .await
            .unwrap();
    assert_eq!(recorded.0, until, "the first attempt that waited has set the end");
}

/// A signal that was received in time counts, however late somebody looks.
#[tokio::test(flavor = "multi_thread")]
async fn a_signal_that_came_in_time_counts_although_the_worker_comes_late() {
    let world = world().await;
    let run = world.start("listen", json!({ "asks": [wait("go", Some(60_000))] })).await;
    work_once(&world.node).await;
    deliver(&world, run, "go", json!("in time")).await;
    world.database.advance_seconds(600).await;
    world.work().await;
    assert_eq!(world.output(run).await, json!(["in time"]));
}

/// R-B14. The end of the wait and the signal at once, many times: the guest is given the signal or nothing, never both, and
/// what it was not given is still there.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn at_the_edge_there_is_exactly_one_outcome() {
    let mut config = config();
    config.signals.wait_ms = 1;
    let world = World::with(Options { keyless: false, convention: None }, config).await;
    world.deploy("listen", "stripe", json!({})).await;
    let second = world.second("two", deedbox::probe::none()).await;
    let shutdown = CancellationToken::new();
    let working = [&world.node, &second].map(|node| tokio::spawn(node.worker().clone().run(shutdown.clone())));
    let mut runs = Vec::new();
    for round in 0..40_u64 {
        let asks = [wait("go", Some(40 + round % 7)), poll("go")];
        let run = world.start("listen", json!({ "asks": asks, "then": ["fail", "return"] })).await;
        runs.push(run);
        let pause = Duration::from_millis(30 + round % 23);
        tokio::time::sleep(pause).await;
        deliver_keyed(&world, run, "go", json!(round), None).await;
    }
    for (round, run) in runs.iter().enumerate() {
        until(async || world.run(*run).await.ended_at.is_some()).await;
        let given = world.output(*run).await;
        let read: i64 =
            sqlx::query_scalar("select count(*) from signal_reads where run_id = $1 and sequence is not null")
                .bind(run)
                .fetch_one(&mut world.database.connect().await)
                .await
                .unwrap();
        let times = given.as_array().unwrap().iter().filter(|given| **given == json!(round)).count() as i64;
        assert!(times <= 1 && times == read, "{given}: read {read} times");
    }
    shutdown.cancel();
    for worker in working {
        worker.await.unwrap();
    }
}

/// A signal that comes just as the attempt gives the run back is not slept through.
#[tokio::test(flavor = "multi_thread")]
async fn a_signal_between_the_last_look_and_the_suspension_is_not_missed() {
    let world = world().await;
    let run = world.start("listen", json!({ "asks": [wait("go", None)] })).await;
    let store = world.node.store();
    let leased = crate::harness::lease(store, "one", 1, 60_000).await.remove(0);
    let lease = deedbox::store::lease::Lease { tenant: TENANT.to_owned(), run_id: run, token: leased.token };
    let ask = signal::Ask {
        lease: lease.clone(),
        kind: signal::Kind::Wait,
        name: "go".to_owned(),
        ordinal: 0,
        timeout_ms: None,
    };
    let signal::Answer::Open { seen, until, .. } = signal::ask(store, &ask).await.unwrap() else { panic!() };
    deliver(&world, run, "go", json!("between")).await;
    let finish = deedbox::store::lease::Finish {
        lease,
        outcome: "suspended".to_owned(),
        failure: None,
        used: deedbox::store::lease::Used::default(),
        next: deedbox::store::lease::Next::AwaitSignal { name: "go".to_owned(), seen, until },
    };
    assert!(deedbox::store::lease::finish(store, finish).await.unwrap());
    assert_eq!(world.run(run).await.state, "queued");
    world.work().await;
    assert_eq!(world.output(run).await, json!(["between"]));
}
