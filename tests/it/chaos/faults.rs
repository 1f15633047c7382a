//! The faults themselves: each does what it says. A storm whose faults do nothing would prove nothing.

use std::sync::atomic::Ordering;
use std::time::Duration;

use sqlx::{Connection, PgConnection};

use super::until;
use crate::harness::Database;
use crate::harness::own_server::user;
use crate::harness::proxy::{Proxy, Target, Way};

/// Longer than anything takes here, and shorter than a hole lasts.
const A_MOMENT: Duration = Duration::from_millis(400);

struct Spoilt {
    database: Database,
    proxy: Proxy,
    name: String,
}

impl Spoilt {
    async fn set_up() -> Self {
        let database = Database::fresh().await;
        database.execute("create table kept (n integer)").await;
        let proxy = Proxy::start(Target::of_url(&database.url), 1).await;
        let name = database.name().to_owned();
        Self { database, proxy, name }
    }

    async fn connect(&self) -> PgConnection {
        PgConnection::connect(&self.proxy.url(user(), &self.name)).await.unwrap()
    }

    async fn kept(&self) -> i64 {
        let count = sqlx::query_scalar("select count(*) from kept");
        count.fetch_one(&mut self.database.connect().await).await.unwrap()
    }
}

async fn keep(connection: &mut PgConnection, n: i32) -> Result<(), sqlx::Error> {
    sqlx::query("insert into kept values ($1)").bind(n).execute(connection).await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_is_that_of_a_statement_that_was_carried_out() {
    let spoilt = Spoilt::set_up().await;
    let mut connection = spoilt.connect().await;
    keep(&mut connection, 1).await.unwrap();
    spoilt.proxy.lose_next(1);
    keep(&mut connection, 2).await.unwrap_err();
    assert_eq!(spoilt.kept().await, 2);
    assert_eq!(spoilt.proxy.counts().lost.load(Ordering::SeqCst), 1);
    // A transaction of several statements, whose commit is what is lost.
    let mut connection = spoilt.connect().await;
    let mut transaction = connection.begin().await.unwrap();
    keep(&mut transaction, 3).await.unwrap();
    spoilt.proxy.lose_next(1);
    transaction.commit().await.unwrap_err();
    assert_eq!(spoilt.kept().await, 3);
    spoilt.proxy.lose(100);
    let mut connection = spoilt.connect().await;
    keep(&mut connection, 4).await.unwrap_err();
    spoilt.proxy.lose(0);
    keep(&mut spoilt.connect().await, 5).await.unwrap();
    assert_eq!(spoilt.kept().await, 5);
    assert_eq!(spoilt.proxy.counts().lost.load(Ordering::SeqCst), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_ends_what_is_open_and_a_refusal_what_is_new() {
    let spoilt = Spoilt::set_up().await;
    let mut connection = spoilt.connect().await;
    spoilt.proxy.set(Way::Refuse);
    PgConnection::connect(&spoilt.proxy.url(user(), &spoilt.name)).await.unwrap_err();
    keep(&mut connection, 1).await.unwrap();
    spoilt.proxy.cut();
    until("the connection is cut", async || spoilt.proxy.counts().cut.load(Ordering::SeqCst) == 1).await;
    keep(&mut connection, 2).await.unwrap_err();
    spoilt.proxy.set(Way::Pass);
    keep(&mut spoilt.connect().await, 3).await.unwrap();
    assert_eq!(spoilt.kept().await, 2);
    let counts = spoilt.proxy.counts();
    assert_eq!([&counts.refused, &counts.cut].map(|count| count.load(Ordering::SeqCst)), [1, 1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hole_holds_everything_back_until_it_is_closed() {
    let spoilt = Spoilt::set_up().await;
    let mut connection = spoilt.connect().await;
    spoilt.proxy.set(Way::BlackHole);
    let mut kept = std::pin::pin!(keep(&mut connection, 1));
    assert!(tokio::time::timeout(A_MOMENT, &mut kept).await.is_err());
    assert!(tokio::time::timeout(A_MOMENT, spoilt.connect()).await.is_err());
    assert_eq!(spoilt.kept().await, 0);
    spoilt.proxy.set(Way::Pass);
    kept.await.unwrap();
    assert_eq!(spoilt.kept().await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silenced_connection_tells_nobody_and_new_ones_pass() {
    let spoilt = Spoilt::set_up().await;
    let mut connection = spoilt.connect().await;
    spoilt.proxy.silence();
    assert!(tokio::time::timeout(A_MOMENT, keep(&mut connection, 1)).await.is_err());
    keep(&mut spoilt.connect().await, 2).await.unwrap();
    assert_eq!(spoilt.kept().await, 1);
    spoilt.proxy.cut();
    until("the cut reaches it, too", async || keep(&mut connection, 3).await.is_err()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delay_is_kept_and_a_proxy_can_be_led_elsewhere() {
    let spoilt = Spoilt::set_up().await;
    let outer = Proxy::start(Target::Unix("nowhere".into()), 1).await;
    let url = outer.url(user(), &spoilt.name);
    PgConnection::connect(&url).await.unwrap_err();
    outer.lead_to(Target::Tcp(spoilt.proxy.address));
    let mut connection = PgConnection::connect(&url).await.unwrap();
    outer.set(Way::Delay(Duration::from_millis(100)));
    let began = std::time::Instant::now();
    keep(&mut connection, 1).await.unwrap();
    // There and back.
    assert!(began.elapsed() >= Duration::from_millis(200), "{:?}", began.elapsed());
    assert_eq!(outer.counts().opened.load(Ordering::SeqCst), 2);
}
