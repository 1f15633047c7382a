//! What the load plays on: a database, a tenant with a token, a provider that takes keys and one that takes none, and
//! the activities that call them.

use deedbox::store::token::NewToken;
use deedbox::{store, token};
use deedbox_books::{Behaviour, Books, Options};
use rand::RngExt;
use rand::rngs::StdRng;
use serde_json::{Value, json};

use super::fleet::{Ground, Origins};
use super::load::Load;
use super::seen::Seen;
use super::{SOON, within};
use crate::harness::{Database, TENANT, World, config, provider};

/// High enough that no run ends because it was disturbed too often.
const MAX_ATTEMPTS: u32 = 200;

pub struct Stage {
    /// Its own provider takes keys.
    pub world: World,
    pub keyless: Books,
    pub token: String,
    _serving: tokio::task::JoinHandle<()>,
}

impl Stage {
    pub async fn fresh() -> Self {
        Self::on(Database::fresh().await).await
    }

    /// On a database that has the schema and nothing else.
    pub async fn on(database: Database) -> Self {
        let world = World::on(database, Options { keyless: false, convention: None }, config()).await;
        let options = Options { keyless: true, convention: None };
        let (keyless, serving) = provider(world.dir.path().join("keyless"), options).await;
        let (token_id, token, hash) = token::mint(TENANT);
        let new = NewToken::whole(TENANT, token_id, hash, "load");
        store::token::create(world.node.store(), TENANT, &new).await.unwrap();
        let other = format!("http://{}", keyless.address);
        let policy = json!({
            "egress": { "allow": [world.origin(), other] },
            "providers": { other: "keyless" },
            "retry": { "max_attempts": MAX_ATTEMPTS, "initial_interval": "50ms", "backoff_coefficient": 1.0 },
        });
        for activity in ["send", "noop", "fail-until"] {
            world.deploy(activity, "stripe", policy.clone()).await;
        }
        Self { world, keyless, token, _serving: serving }
    }

    /// Where processes start that reach the database at this address.
    pub fn ground(&self, database_url: &str) -> Ground {
        Ground::new(self.world.dir.path(), database_url)
    }

    pub fn load(&self, origins: &Origins, seed: u64) -> Load {
        Load::begin(origins.clone(), self.token.clone(), self.calls(), seed)
    }

    pub fn calls(&self) -> Calls {
        Calls { keyed: self.world.charges(), keyless: format!("http://{}/v1/charges", self.keyless.address) }
    }

    /// Makes the providers slow now and then, and the one with keys lose some of its answers, too.
    pub async fn unsettle(&self, dice: &mut StdRng) {
        let slow = |dice: &mut StdRng| Behaviour::SlowAfterApply { ms: dice.random_range(20..300) };
        let draw = |dice: &mut StdRng| match dice.random_range(0..10) {
            0 => Behaviour::CutAfterApply,
            1..4 => slow(dice),
            _ => Behaviour::Normal,
        };
        let keyed: Vec<Behaviour> = (0..4_000).map(|_| draw(dice)).collect();
        // Under way for long, so that some are open when something fails.
        let keyless: Vec<Behaviour> = (0..1_000).map(|_| slow(dice)).collect();
        self.world.script(&keyed).await;
        self.keyless.script(&keyless).await.unwrap();
    }

    /// Waits until every run has ended or waits for the answer to an open question, and no send is under way.
    pub async fn drained(&self) {
        let mut connection = self.world.database.connect().await;
        let busy = "select
              (select count(*) from runs r where ended_at is null and not (state = 'waiting' and exists (
                 select from effects e where e.tenant = r.tenant and e.holder_run = r.run_id and e.state = 'escaped')))
            + (select count(*) from effects where state = 'claimed')";
        within(2 * SOON, "all runs have ended or wait for an answer", async || {
            sqlx::query_scalar::<_, i64>(busy).fetch_one(&mut connection).await.unwrap() == 0
        })
        .await;
    }

    /// Everything that the checks look at. The load is over and all is drained.
    pub async fn seen(&self, load: super::load::Starts) -> Seen {
        let (keyed, keyless) = (self.world.books, self.keyless);
        Seen::read(&self.world.database, load, keyed, keyless).await
    }
}

/// The inputs of the activity `send`.
#[derive(Clone, Debug)]
pub struct Calls {
    keyed: String,
    keyless: String,
}

impl Calls {
    /// One call or two with a key, or one without. Every call has a mark of its own in its body.
    pub fn input(&self, number: usize, dice: &mut StdRng) -> Value {
        let mark = |part: &str| format!("{number}-{part}");
        let call = |url: &str, part: &str| json!({ "method": "POST", "url": url, "json": { "mark": mark(part) }, "expect": 201 });
        let named = |mut call: Value, part: &str| {
            call["identity"] = json!({ "named": mark(part) });
            call
        };
        let calls = match dice.random_range(0..10) {
            0..6 => vec![named(call(&self.keyed, "a"), "a")],
            6..8 => vec![call(&self.keyed, "a"), named(call(&self.keyed, "b"), "b")],
            _ => vec![named(call(&self.keyless, "a"), "a")],
        };
        json!({ "calls": calls, "fail_on_error": true })
    }

    /// One call with a key.
    pub fn charge(&self, number: usize) -> Value {
        let mark = format!("{number}-a");
        let call =
            json!({ "method": "POST", "url": self.keyed, "json": { "mark": mark }, "identity": { "named": mark } });
        json!({ "calls": [call], "fail_on_error": true })
    }
}
