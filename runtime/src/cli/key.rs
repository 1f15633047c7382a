//! `deedbox key`: the keys that seal secrets. It goes to the database itself, because master keys belong to those who run the nodes
//! and must not pass through the API. It shows ids, never a key.

use std::collections::BTreeMap;
use std::sync::Arc;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::master_keys::Keys;
use super::output::{Output, items, text};
use super::table::{Table, pairs};
use crate::clock::SystemClock;
use crate::gateway::vault::{MasterKeys, Rotated, Vault};
use crate::store::{Store, reseal, sealing_key, tenant};

/// For statements that follow one another.
const CONNECTIONS: u32 = 2;

/// Reasons that are shown; the others are counted.
const SHOWN: usize = 20;

#[derive(Debug, Args)]
pub(super) struct Key {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the master keys that the database needs, with what each of them holds.
    List(Place),
    /// Wrap all keys with the current master key, and seal anew what older versions sealed with a master key itself. May be broken
    /// off and done again, and done while nodes work.
    Rotate(Place),
    /// Give a tenant a new data key. What older ones have sealed they still open.
    Renew {
        tenant: String,
        #[command(flatten)]
        place: Place,
    },
}

#[derive(Debug, Args)]
struct Place {
    /// The fleet's database: postgres://USER:PASSWORD@HOST/DATABASE
    #[arg(long, value_name = "URL", env = "DATABASE_URL", hide_env_values = true)]
    database_url: String,
    #[command(flatten)]
    keys: Keys,
}

impl Key {
    pub(super) async fn run(self, output: &Output) -> anyhow::Result<()> {
        let (Command::List(place) | Command::Rotate(place) | Command::Renew { place, .. }) = &self.command;
        let store = Store::connect(&place.database_url, CONNECTIONS)?;
        let done = self.command.run(output, &store).await;
        store.close().await;
        done
    }
}

impl Command {
    async fn run(&self, output: &Output, store: &Store) -> anyhow::Result<()> {
        match self {
            Self::List(place) => {
                let given = place.keys.read_if_given().await?;
                store.check_schema().await?;
                output.show(&listed(store, given.as_ref()).await?, table)
            }
            Self::Rotate(place) => {
                let keys = place.keys.read().await?;
                let rotated = vault(store, keys.clone()).await?.rotate().await?;
                let list = listed(store, Some(&keys)).await?;
                let left = rotated.left.len();
                output.show(&told(&rotated, &list), |told| shown(told, &rotated.left))?;
                match left {
                    0 => Ok(()),
                    left => anyhow::bail!("{left} values could not be opened and stay as they are"),
                }
            }
            Self::Renew { tenant, place } => {
                let vault = vault(store, place.keys.read().await?).await?;
                if !tenant::exists(store, tenant).await? {
                    anyhow::bail!("there is no tenant `{tenant}`");
                }
                let id = vault.renew(tenant).await?;
                let words = format!("{tenant} seals with its data key {id}: every node does within half a minute");
                output.show(&json!({ "tenant": tenant, "key": id }), |_| words)
            }
        }
    }
}

async fn vault(store: &Store, keys: MasterKeys) -> anyhow::Result<Vault> {
    store.check_schema().await?;
    Ok(Vault::open(store.clone(), keys, Arc::new(SystemClock)).await?)
}

/// What each master key holds, those included that hold nothing and are given.
async fn listed(store: &Store, given: Option<&MasterKeys>) -> anyhow::Result<Value> {
    let mut held: BTreeMap<String, (i64, i64)> = BTreeMap::new();
    for wraps in sealing_key::masters(store).await? {
        held.entry(wraps.master_id).or_default().0 = wraps.keys;
    }
    for direct in reseal::direct(store).await? {
        held.entry(direct.master_id).or_default().1 = direct.values;
    }
    for key in given.into_iter().flat_map(MasterKeys::all) {
        held.entry(key.id()).or_default();
    }
    let role = |id: &str| match given {
        None => "",
        Some(keys) if keys.current().id() == id => "current",
        Some(keys) if keys.all().any(|key| key.id() == id) => "other",
        Some(_) => "not given",
    };
    let items = held.iter().map(|(id, (keys, values))| {
        json!({ "master_key": id, "is": role(id), "keys": keys, "values": values, "needed": keys + values > 0 })
    });
    Ok(json!({ "items": items.collect::<Vec<_>>() }))
}

fn table(list: &Value) -> String {
    let mut table = Table::new(&["master key", "is", "keys", "values of old versions", "needed"]);
    for item in items(list) {
        let needed = if item["needed"] == json!(true) { "yes" } else { "no" };
        let cell = |name| text(item, name);
        table.row([cell("/master_key"), cell("/is"), cell("/keys"), cell("/values"), needed.to_owned()]);
    }
    table.render("no sealing keys: the first node that starts makes them")
}

fn told(rotated: &Rotated, list: &Value) -> Value {
    json!({
        "rewrapped": rotated.rewrapped,
        "resealed": rotated.resealed,
        "left": rotated.left,
        "master_keys": list["items"],
    })
}

fn shown(told: &Value, left: &[String]) -> String {
    let rows = [("keys wrapped anew", text(told, "/rewrapped")), ("values sealed anew", text(told, "/resealed"))];
    let reasons: String = left.iter().take(SHOWN).map(|reason| format!("left: {reason}\n")).collect();
    format!("{}{reasons}\n{}", pairs(&rows), table(&json!({ "items": told["master_keys"] })))
}
