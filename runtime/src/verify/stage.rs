//! What all cases of a verification share: a template of the database, with the module in it and its compiled code on disk; and
//! what each case makes of it: a database of its own, the deployed activity, a run under the one id, so that keys are the same.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Mutex;
use uuid::Uuid;

use super::plan::{Plan, origins_in};
use super::providers::StandIn;
use super::{Error, conventions};
use crate::clock::SystemClock;
use crate::config::{Config, DirectoryConfig};
use crate::gateway::provider::{Profiles, UNLISTED};
use crate::gateway::vault::MasterKey;
use crate::node::{Node, NodeSettings};
use crate::policy::{Origin, Policy};
use crate::probe;
use crate::store::activity::NewVersion;
use crate::store::provenance::By;
use crate::store::signal::Delivery;
use crate::store::start::NewRun;
use crate::store::{self, Store};

pub const TENANT: &str = "verify";
/// The run of every case.
pub const RUN: Uuid = Uuid::from_u128(0x0190_b1c2_0000_7000_8000_0000_0000_0007);

/// Enough for statements that follow one another.
const CONNECTIONS: u32 = 2;
/// Attempts that a run has at least, so that a death and what follows never end it by themselves.
const LEAST_ATTEMPTS: u64 = 20;
/// No lease ends and no send is cut by itself while a case waits for something.
const PATIENT_MS: u64 = 300_000;
/// For the cases in which a provider does not answer in time.
const SHORT_SEND_MS: u64 = 1_500;

/// How a case differs from the ordinary in what is deployed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings {
    /// Every provider is one that takes no key.
    pub keyless: bool,
    /// Random numbers differ from run to run, and a key that the body makes counts.
    pub fresh: bool,
    /// Sends are soon given up.
    pub short_sends: bool,
}

#[derive(Debug)]
pub struct Stage {
    plan: Plan,
    /// The activity's name, which is that of its export.
    pub activity: String,
    digest: [u8; 32],
    pub stand_ins: Vec<StandIn>,
    policy: Value,
    server: url::Url,
    prefix: String,
    /// PostgreSQL copies a template only while nobody is connected to it, and one copy after the other.
    copying: Mutex<()>,
}

impl Stage {
    /// Makes the template: schema, tenant, keys, module. Fails when the component, the activity, the policy or a provider
    /// cannot be used.
    pub async fn set_up(plan: Plan) -> Result<Self, Error> {
        let wrong = |why: String| Error::Usage(why);
        let input: Value = serde_json::from_str(&plan.input).map_err(|e| wrong(format!("--input is not JSON: {e}")))?;
        let server = url::Url::parse(&plan.database_url).map_err(|e| wrong(format!("the database's URL: {e}")))?;
        let stand_ins = stand_ins(&plan, &input)?;
        let policy = policy(&plan, &stand_ins)?;
        let prefix = format!("deedbox_verify_{}", &Uuid::new_v4().simple().to_string()[..12]);
        let mut stage = Self {
            activity: String::new(),
            digest: [0; 32],
            stand_ins,
            policy,
            server,
            prefix,
            copying: Mutex::default(),
            plan,
        };
        store::create_database(&stage.plan.database_url, &stage.template()).await?;
        let filled = stage.fill().await;
        if filled.is_err() {
            stage.remove_template().await;
        }
        (stage.activity, stage.digest) = filled?;
        Ok(stage)
    }

    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    fn template(&self) -> String {
        format!("{}_template", self.prefix)
    }

    fn url(&self, database: &str) -> String {
        let mut url = self.server.clone();
        url.set_path(&format!("/{database}"));
        url.into()
    }

    async fn fill(&self) -> Result<(String, [u8; 32]), Error> {
        let url = self.url(&self.template());
        let store = Store::connect(&url, CONNECTIONS)?;
        store.migrate().await?;
        store::tenant::create(&store, TENANT).await?;
        store.close().await;
        let settings = self.settings(&url, &Config::default(), "stage")?;
        let node = Node::open_with(settings, std::sync::Arc::new(SystemClock), probe::none()).await?;
        let uploaded = node.registry().upload(TENANT, self.plan.component.clone().into()).await;
        let described = match &uploaded {
            Ok(uploaded) => store::module::find(node.store(), TENANT, &uploaded.digest).await,
            Err(_) => Ok(None),
        };
        node.close().await;
        let (digest, module) = (uploaded?.digest, described?);
        let text = module.map(|module| module.activities).unwrap_or_default();
        let described: Vec<Value> = serde_json::from_str(&text).unwrap_or_default();
        let names: Vec<&str> = described.iter().filter_map(|activity| activity["name"].as_str()).collect();
        Ok((chosen(&names, self.plan.activity.as_deref())?, digest))
    }

    /// A database of a case's own. Must be given back with [`Self::remove`].
    pub async fn database(&self, number: usize) -> Result<String, Error> {
        let name = format!("{}_{number}", self.prefix);
        let _alone = self.copying.lock().await;
        store::copy_database(&self.plan.database_url, &name, &self.template()).await?;
        Ok(self.url(&name))
    }

    pub async fn remove(&self, number: usize) {
        let name = format!("{}_{number}", self.prefix);
        if let Err(error) = store::drop_database(&self.plan.database_url, &name).await {
            tracing::warn!(%error, name, "a case's database is left behind");
        }
    }

    pub async fn remove_template(&self) {
        if let Err(error) = store::drop_database(&self.plan.database_url, &self.template()).await {
            tracing::warn!(%error, "the template of the verification is left behind");
        }
    }

    /// The settings of a case: directories for its files, and times in which nothing happens by itself.
    pub fn config(&self, settings: Settings, dir: &std::path::Path) -> Result<Config, Error> {
        let mut config = Config::default();
        let send = if settings.short_sends { SHORT_SEND_MS } else { PATIENT_MS };
        (config.gateway.default_send_ms, config.gateway.max_send_ms) = (send, send);
        config.gateway.in_flight_wait_ms = 300;
        config.gateway.max_retry_after_ms = 1_000;
        config.worker.lease_ms = PATIENT_MS;
        config.worker.max_retry_after_ms = 1_000;
        config.signals.wait_ms = 100;
        config.host.max_instances = 2;
        config.host.guest_threads = 2;
        config.database.max_connections = 6;
        let mut directories = BTreeMap::new();
        let names = self.policy.pointer("/files/allow").and_then(Value::as_array);
        for name in names.into_iter().flatten().filter_map(Value::as_str) {
            let path = dir.join(name);
            std::fs::create_dir_all(&path)?;
            directories.insert(name.to_owned(), DirectoryConfig { path, tenants: Vec::new() });
        }
        config.files.directories = directories;
        Ok(config)
    }

    /// The settings of one node of a case.
    pub fn settings(&self, url: &str, config: &Config, name: &str) -> Result<NodeSettings, Error> {
        let mut config = config.clone();
        config.host.compiler.clone_from(&self.plan.compiler);
        let key = MasterKey::read(&self.plan.master_key_file)
            .map_err(|error| Error::Usage(format!("the verification's own key: {error}")))?;
        Ok(NodeSettings {
            database_url: url.to_owned(),
            master_keys: key.into(),
            cache_dir: self.plan.dir.join("compiled"),
            config,
            name: name.to_owned(),
        })
    }

    /// Deploys the activity as the case wants it, and starts the run.
    pub async fn start(&self, url: &str, settings: Settings) -> Result<(), Error> {
        let store = Store::connect(url, CONNECTIONS)?;
        let started = self.start_in(&store, settings).await;
        store.close().await;
        started
    }

    async fn start_in(&self, store: &Store, settings: Settings) -> Result<(), Error> {
        let policy = self.policy_of(settings).map_err(Error::Usage)?;
        let text = serde_json::to_string(&policy).unwrap_or_default();
        let (activity, by) = (self.activity.as_str(), &By::Operator);
        let new = NewVersion {
            activity,
            digest: &self.digest,
            export: activity,
            policy: &text,
            max_running: None,
            by,
            signed: None,
        };
        let version = store::activity::deploy(store, TENANT, new).await?;
        let run = NewRun {
            retry: serde_json::to_string(&policy.retry).unwrap_or_default(),
            max_attempts: i32::try_from(policy.retry.max_attempts).unwrap_or(i32::MAX),
            ..NewRun::plain(RUN, activity, version, &self.plan.input)
        };
        let most = Config::default().signals.max_unread;
        let mut tx = store.transaction().await?;
        store::start::start(&mut tx, TENANT, &run, most).await?;
        for (name, payload) in &self.plan.signals {
            let delivery = Delivery { name: name.clone(), payload: payload.clone(), idempotency_key: None };
            store::signal::deliver(&mut tx, TENANT, RUN, &delivery, most).await?;
        }
        Ok(tx.commit().await?)
    }

    fn policy_of(&self, settings: Settings) -> Result<Policy, String> {
        let mut policy = self.policy.clone();
        if settings.keyless {
            for stand_in in &self.stand_ins {
                policy["providers"][stand_in.origin.to_string()] = json!("keyless");
            }
        }
        if settings.fresh {
            policy["randomness"] = json!("fresh");
            policy["guest_keys"] = json!("trust");
        }
        Policy::parse(&policy.to_string())
    }

    /// Lets the lease of the run be over.
    pub async fn end_lease(&self, url: &str) -> Result<(), Error> {
        let store = Store::connect(url, CONNECTIONS)?;
        let ended = store::control::end_lease(&store, TENANT, RUN).await;
        store.close().await;
        ended?;
        Ok(())
    }

    /// How long one step of a case may take.
    pub fn patience(&self) -> Duration {
        Duration::from_secs(60)
    }
}

fn chosen(names: &[&str], wanted: Option<&str>) -> Result<String, Error> {
    let listed = || names.join(", ");
    match (wanted, names) {
        (Some(name), _) if names.contains(&name) => Ok(name.to_owned()),
        (Some(name), _) => Err(Error::Usage(format!("the component has no activity `{name}`, only: {}", listed()))),
        (None, [only]) => Ok((*only).to_owned()),
        (None, []) => Err(Error::Usage("the component has no activity".to_owned())),
        (None, _) => Err(Error::Usage(format!("choose an activity with --activity: {}", listed()))),
    }
}

/// One provider for each origin that is named by a flag, by the policy, or by the input where there is no policy.
fn stand_ins(plan: &Plan, input: &Value) -> Result<Vec<StandIn>, Error> {
    let profiles = Profiles::load(None).map_err(|error| Error::Usage(error.to_string()))?;
    let mut origins: Vec<Origin> = plan.providers.iter().filter_map(|provider| provider.origin.clone()).collect();
    match &plan.policy {
        Some(policy) => origins.extend(policy.egress.origins()),
        None => origins.extend(origins_in(input)),
    }
    origins.extend(plan.pages.iter().filter_map(|page| super::providers::origin_of(page.url.as_str())));
    let rest = plan.providers.iter().find(|provider| provider.origin.is_none());
    let mut stand_ins: Vec<StandIn> = Vec::new();
    for origin in origins {
        if stand_ins.iter().any(|known| known.origin == origin) {
            continue;
        }
        let named = plan.providers.iter().find(|provider| provider.origin.as_ref() == Some(&origin));
        let by_policy = plan.policy.as_ref().and_then(|policy| policy.provider_at(&origin)).map(str::to_owned);
        let by_host = || profiles.at(&origin).map(|profile| profile.name.0.clone());
        if named.is_none() && plan.live {
            continue;
        }
        let profile = named.map(|it| it.profile.clone()).or(by_policy).or_else(by_host);
        let profile = profile.or_else(|| rest.map(|it| it.profile.clone())).unwrap_or_else(|| UNLISTED.to_owned());
        if profiles.get(&profile).is_none() {
            return Err(Error::Usage(format!("there is no profile `{profile}`: docs/providers.md lists them")));
        }
        let mut convention = conventions::of(&profile);
        let here =
            plan.pages.iter().filter(|page| super::providers::origin_of(page.url.as_str()).as_ref() == Some(&origin));
        convention.pages = here.map(|page| (path_of(&page.url), page.text.clone())).collect();
        stand_ins.push(StandIn { origin, profile, convention });
    }
    Ok(stand_ins)
}

fn path_of(url: &url::Url) -> String {
    match url.query() {
        Some(query) => format!("{}?{query}", url.path()),
        None => url.path().to_owned(),
    }
}

/// The deployment's policy with quick retries, without credentials, and with who stands for whom.
fn policy(plan: &Plan, stand_ins: &[StandIn]) -> Result<Value, Error> {
    let given = plan.policy.clone().unwrap_or_default();
    let attempts = u64::from(given.retry.max_attempts).max(LEAST_ATTEMPTS);
    let mut policy = serde_json::to_value(&given).map_err(|error| Error::Usage(error.to_string()))?;
    policy["retry"]["max_attempts"] = json!(attempts);
    policy["retry"]["initial_interval"] = json!("20ms");
    policy["retry"]["max_interval"] = json!("20ms");
    policy["retry"]["backoff_coefficient"] = json!(1.0);
    policy["retry"]["jitter"] = json!("none");
    if !plan.live {
        policy["credentials"] = json!({});
    }
    let others = given.providers.iter().filter(|(text, _)| {
        let origin = Origin::parse(text).ok();
        !stand_ins.iter().any(|stand_in| Some(&stand_in.origin) == origin.as_ref())
    });
    policy["providers"] = others.map(|(text, profile)| (text.clone(), json!(profile))).collect();
    for stand_in in stand_ins {
        let origin = stand_in.origin.to_string();
        policy["providers"][origin.as_str()] = json!(stand_in.profile);
        let named = given.egress.origins().any(|known| known == stand_in.origin);
        if let (false, Some(allow)) = (named, policy.pointer_mut("/egress/allow").and_then(Value::as_array_mut)) {
            allow.push(json!(origin));
        }
    }
    Policy::parse(&policy.to_string()).map_err(Error::Usage)?;
    Ok(policy)
}
