//! Asks a component what it offers, at upload: without a run, within the limits of one.

use std::sync::Arc;

use tokio::time::Instant;

use super::bounds::Bounds;
use super::engine::{Engine, Module};
use super::execute::new_store;
use super::guest::Setting;
use super::outcome::{self, Outcome};
use crate::config::ms;

/// One activity of a module. The schemas are JSON texts.
#[derive(Clone, Debug, serde::Deserialize, serde::Serialize)]
pub struct Descriptor {
    pub name: String,
    pub summary: String,
    pub input_schema: Option<String>,
    pub output_schema: Option<String>,
}

/// Stands where a tenant stands: uploads together have their turns like one.
const UPLOADS: &str = "";

/// Calls `describe` on the guests' threads; the error says in words what went wrong.
pub async fn describe(engine: &Arc<Engine>, module: &Arc<Module>) -> Result<Vec<Descriptor>, String> {
    let (on, module) = (engine.clone(), module.clone());
    let described = engine.threads.run(UPLOADS, async move { ask(&on, &module).await }).await;
    described.unwrap_or_else(|| Err("the host stops".to_owned()))
}

async fn ask(engine: &Engine, module: &Module) -> Result<Vec<Descriptor>, String> {
    let _place = engine.describing.acquire().await.map_err(|e| e.to_string())?;
    let deadline = Instant::now() + ms(engine.config.describe_timeout_ms);
    let bounds = Bounds::defaults(&engine.config);
    let mut store = new_store(engine, Setting { bounds, deadline, random_seed: Some([0; 32]), run: None });
    let cpu = store.data().meter.cpu.clone();
    let result = {
        let call = std::pin::pin!(async {
            let instance = module.pre.instantiate_async(&mut store).await?;
            instance.deedbox_activity_activities().call_describe(&mut store).await
        });
        tokio::time::timeout_at(deadline, cpu.measured(call)).await
    };
    let late = || format!("`describe` did not end within {} ms", engine.config.describe_timeout_ms);
    let found = result.map_err(|_| late())?.map_err(|error| {
        let guest = store.data();
        match outcome::ended(error, guest.limiter.denied, &guest.stderr.take().text()) {
            Outcome::Ended { code: "timed-out", .. } => late(),
            Outcome::Ended { code, message } => format!("`describe` ended with {code}: {message}"),
            other => format!("`describe` ended with {other:?}"),
        }
    })?;
    Ok(found
        .into_iter()
        .map(|d| Descriptor {
            name: d.name,
            summary: d.summary,
            input_schema: d.input_schema,
            output_schema: d.output_schema,
        })
        .collect())
}
