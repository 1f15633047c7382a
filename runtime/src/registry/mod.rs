//! Modules: from uploaded bytes to something that can be run. Validates, digests and stores components, compiles them in
//! a bounded pool off the request path, and keeps compiled code in memory and on disk.

mod artefact;
mod compile;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tokio::sync::{OnceCell, Semaphore};
use wasmtime::component::Component;

use crate::host::{self, Descriptor, Engine, Module};
use crate::store::module::Kept;
use crate::store::{self, Store, Tx};

pub use artefact::{Artefacts, CacheError};

/// Compilations at once; others wait.
const MAX_COMPILATIONS: usize = 2;

/// Modules kept ready in memory; beyond it the one that was used longest ago is dropped and read from disk again.
const MAX_LOADED: usize = 256;

/// Activities in one module.
const MAX_ACTIVITIES: usize = 256;

/// Why a component cannot be taken or run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The caller's mistake, in words.
    #[error("{0}")]
    Invalid(String),
    /// The tenant's limit of this name is reached.
    #[error("the tenant's limit {0} is reached")]
    Limit(String),
    #[error(transparent)]
    Store(#[from] store::Error),
    #[error("the module cannot be made ready: {0}")]
    Internal(String),
}

/// A stored module.
#[derive(Clone, Copy, Debug)]
pub struct Uploaded {
    pub digest: [u8; 32],
    /// False when the same bytes were there already.
    pub fresh: bool,
}

/// A component that was found to be good.
#[derive(Clone, Debug)]
pub struct Prepared {
    pub digest: [u8; 32],
    /// None: the tenant has the same bytes already.
    new: Option<New>,
}

#[derive(Clone, Debug)]
struct New {
    bytes: Bytes,
    imports: String,
    activities: String,
}

impl Prepared {
    /// Stores the component; false when the same bytes are there already.
    pub async fn store(&self, tx: &mut Tx, tenant: &str) -> Result<bool, Error> {
        let Some(new) = &self.new else { return Ok(false) };
        let kept = store::module::create(tx, tenant, &self.digest, &new.bytes, &new.imports, &new.activities).await?;
        is_fresh(kept)
    }
}

type Ready = (Vec<String>, Arc<Module>);

type Loaded = HashMap<[u8; 32], (u64, Arc<OnceCell<Arc<Module>>>)>;

#[derive(Debug)]
pub struct Registry {
    store: Store,
    engine: Arc<Engine>,
    artefacts: Artefacts,
    compilations: Arc<Semaphore>,
    loaded: Mutex<(u64, Loaded)>,
}

impl Registry {
    pub fn new(store: Store, engine: Arc<Engine>, artefacts: Artefacts) -> Self {
        Self {
            store,
            engine,
            artefacts,
            compilations: Arc::new(Semaphore::new(MAX_COMPILATIONS)),
            loaded: Mutex::default(),
        }
    }

    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// Validates, compiles and describes a component. The same bytes are stored once.
    pub async fn prepare(&self, tenant: &str, bytes: Bytes) -> Result<Prepared, Error> {
        let digest = *blake3::hash(&bytes).as_bytes();
        if store::module::find(&self.store, tenant, &digest).await?.is_some() {
            return Ok(Prepared { digest, new: None });
        }
        compile::check_header(&bytes)?;
        // Asked again when it is kept; now, so that nothing is compiled in vain.
        is_fresh(store::module::check_limits(&self.store, tenant, &digest, bytes.len()).await?)?;
        let (component, (imports, module)) = match self.cached(digest)? {
            Some(ready) => (None, ready),
            None => self.compile(bytes.clone()).await.map(|(component, ready)| (Some(component), ready))?,
        };
        let activities = host::describe(&self.engine, &module).await.map_err(Error::Invalid)?;
        check_activities(&activities)?;
        // Only now: a component that is refused must not fill the disk.
        if let Some(component) = component {
            self.keep(digest, component).await?;
        }
        let internal = |e: serde_json::Error| Error::Internal(e.to_string());
        let imports = serde_json::to_string(&imports).map_err(internal)?;
        let activities = serde_json::to_string(&activities).map_err(internal)?;
        Ok(Prepared { digest, new: Some(New { bytes, imports, activities }) })
    }

    /// Validates, compiles, describes and stores a component.
    pub async fn upload(&self, tenant: &str, bytes: Bytes) -> Result<Uploaded, Error> {
        let prepared = self.prepare(tenant, bytes).await?;
        let fresh = prepared.store(&mut self.store.statement().await?, tenant).await?;
        Ok(Uploaded { digest: prepared.digest, fresh })
    }

    /// The module ready to run: from memory, else from this node's disk, else compiled from the stored bytes.
    pub async fn load(&self, tenant: &str, digest: [u8; 32]) -> Result<Arc<Module>, Error> {
        let place = self.place(digest);
        let module = place.get_or_try_init(|| self.load_cold(tenant, digest)).await?;
        Ok(module.clone())
    }

    async fn load_cold(&self, tenant: &str, digest: [u8; 32]) -> Result<Arc<Module>, Error> {
        if let Some((_, module)) = self.cached(digest)? {
            return Ok(module);
        }
        let bytes = store::module::load(&self.store, tenant, &digest).await?;
        if *blake3::hash(&bytes).as_bytes() != digest {
            return Err(Error::Internal("the stored bytes are not those that were uploaded".to_owned()));
        }
        let (component, (_, module)) = self.compile(bytes.into()).await?;
        self.keep(digest, component).await?;
        Ok(module)
    }

    /// From the compiled code on this node's disk.
    fn cached(&self, digest: [u8; 32]) -> Result<Option<Ready>, Error> {
        self.artefacts.load(&self.engine, &digest).map(|component| ready(&self.engine, &component)).transpose()
    }

    async fn compile(&self, bytes: Bytes) -> Result<(Component, Ready), Error> {
        let place = self.compilations.clone().acquire_owned().await.map_err(|e| Error::Internal(e.to_string()))?;
        let engine = self.engine.clone();
        let work = tokio::task::spawn_blocking(move || {
            // Held by the work, not by who waits for it: an uploader who hangs up does not free a place.
            let _place = place;
            let component = compile::compile(&engine, &bytes)?;
            let ready = ready(&engine, &component)?;
            Ok((component, ready))
        });
        work.await.map_err(|e| Error::Internal(format!("compiling failed: {e}")))?
    }

    /// Keeps compiled code on this node's disk.
    async fn keep(&self, digest: [u8; 32], component: Component) -> Result<(), Error> {
        let (engine, artefacts) = (self.engine.clone(), self.artefacts.clone());
        let work = tokio::task::spawn_blocking(move || artefacts.save(&engine, &digest, &component));
        work.await.map_err(|e| Error::Internal(format!("keeping compiled code failed: {e}")))
    }

    fn place(&self, digest: [u8; 32]) -> Arc<OnceCell<Arc<Module>>> {
        let mut guard = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let (clock, loaded) = &mut *guard;
        *clock += 1;
        if loaded.len() >= MAX_LOADED && !loaded.contains_key(&digest) {
            let oldest = loaded.iter().min_by_key(|(_, (used, _))| *used).map(|(digest, _)| *digest);
            oldest.map(|digest| loaded.remove(&digest));
        }
        let entry = loaded.entry(digest).or_default();
        entry.0 = *clock;
        entry.1.clone()
    }
}

/// Whether a component is kept for the first time, where it is kept at all.
fn is_fresh(kept: Kept) -> Result<bool, Error> {
    match kept {
        Kept::Fresh => Ok(true),
        Kept::Known => Ok(false),
        Kept::Refused { limit } => Err(Error::Limit(limit)),
    }
}

/// The imports of a component, checked, and the component linked.
fn ready(engine: &Engine, component: &Component) -> Result<Ready, Error> {
    Ok((compile::imports(engine, component)?, Arc::new(compile::link(engine, component)?)))
}

fn check_activities(activities: &[Descriptor]) -> Result<(), Error> {
    if activities.is_empty() || activities.len() > MAX_ACTIVITIES {
        return Err(Error::Invalid(format!(
            "a module describes 1 to {MAX_ACTIVITIES} activities, this one {}",
            activities.len()
        )));
    }
    let mut names = std::collections::HashSet::new();
    for activity in activities {
        check_name(&activity.name)?;
        if !names.insert(&activity.name) {
            return Err(Error::Invalid(format!("the activity `{}` is described twice", activity.name)));
        }
        check_schema(&activity.name, activity.input_schema.as_deref())?;
        check_schema(&activity.name, activity.output_schema.as_deref())?;
    }
    Ok(())
}

fn check_name(name: &str) -> Result<(), Error> {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    if (1..=128).contains(&name.len()) && name.bytes().all(allowed) {
        return Ok(());
    }
    let shown = name.escape_debug();
    Err(Error::Invalid(format!("the activity name `{shown}` must be 1 to 128 letters, digits, `.`, `_` or `-`")))
}

fn check_schema(activity: &str, schema: Option<&str>) -> Result<(), Error> {
    let parsed = schema.map(serde_json::from_str::<serde_json::Value>).transpose();
    parsed
        .map(drop)
        .map_err(|e| Error::Invalid(format!("a schema of the activity `{activity}` is not a JSON text: {e}")))
}
