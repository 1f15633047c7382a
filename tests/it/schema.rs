//! A node looks at the database's schema before it works, and does not touch one of a later version.

use deedbox::store::{Error, Store};

use crate::harness::Database;

const LATER: i64 = 9_999;

#[tokio::test(flavor = "multi_thread")]
async fn a_schema_of_a_later_version_is_refused() {
    let database = Database::fresh().await;
    let store = Store::connect(&database.url, 2).unwrap();
    store.check_schema().await.unwrap();
    store.migrate().await.unwrap();
    let later = format!(
        "insert into _sqlx_migrations (version, description, success, checksum, execution_time)
         values ({LATER}, 'of a later version', true, '\\x00', 0)"
    );
    database.execute(&later).await;
    for refused in [store.check_schema().await, store.migrate().await] {
        assert!(matches!(refused, Err(Error::NewerSchema(LATER))), "{refused:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_without_the_schema_is_told_to_be_migrated() {
    let database = Database::fresh().await;
    let store = Store::connect(&database.url, 2).unwrap();
    database.execute("delete from _sqlx_migrations").await;
    assert!(matches!(store.check_schema().await, Err(Error::NotMigrated)));
    database.execute("drop table _sqlx_migrations").await;
    assert!(matches!(store.check_schema().await, Err(Error::NotMigrated)));
}
