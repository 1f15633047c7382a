//! Modules: from uploaded bytes to something that can be run. Validates, digests and stores components, has them compiled in
//! processes of their own, few at once and within limits, and keeps compiled code in memory and on disk. No thread that serves or
//! runs anything else must ever wait for that, and foreign bytes are never compiled in this process.

mod artefact;
mod child;
pub(crate) mod compile;
pub mod compiler;
mod frame;
mod loaded;
mod places;
mod sweep;

use std::sync::Arc;

use bytes::Bytes;
use tokio_util::sync::CancellationToken;
use wasmtime::component::Component;

use crate::host::{self, Descriptor, Engine, Module};
use crate::store::module::Kept;
use crate::store::provenance::By;
use crate::store::{self, Store, Tx};

use artefact::Code;
use child::Compiler;
use loaded::Loaded;
use places::{Place, Places};

pub use artefact::{Artefacts, CacheError};
pub use compile::check_header;

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
    /// Stores the component, and who brings it; false when the same bytes are there already.
    pub async fn store(&self, tx: &mut Tx, tenant: &str, by: &By) -> Result<bool, Error> {
        let Some(new) = &self.new else { return Ok(false) };
        let New { bytes, imports, activities } = new;
        is_fresh(store::module::create(tx, tenant, &self.digest, bytes, imports, activities, by).await?)
    }
}

/// A component that is loaded and linked.
struct Ready {
    imports: Vec<String>,
    module: Arc<Module>,
    /// Of its compiled code.
    bytes: u64,
}

/// A component that was just compiled. It keeps its place until its code is on the disk, so that no more of it than there are
/// places waits in memory.
struct Compiled {
    code: Code,
    ready: Ready,
    place: Place,
}

#[derive(Debug)]
pub struct Registry {
    store: Store,
    engine: Arc<Engine>,
    artefacts: Artefacts,
    compiler: Compiler,
    places: Places,
    loaded: Loaded<Module>,
}

impl Registry {
    pub fn new(store: Store, engine: Arc<Engine>, artefacts: Artefacts) -> Self {
        let config = engine.config();
        Self {
            compiler: Compiler::new(config),
            places: Places::new(config.max_compilations),
            loaded: Loaded::new(MAX_LOADED, config.max_loaded_bytes),
            store,
            engine,
            artefacts,
        }
    }

    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// Validates, compiles and describes a component. The same bytes are stored once.
    pub async fn prepare(&self, tenant: &str, bytes: Bytes) -> Result<Prepared, Error> {
        let hashed = bytes.clone();
        let digest = blocking(move || Ok(*blake3::hash(&hashed).as_bytes())).await?;
        if store::module::find(&self.store, tenant, &digest).await?.is_some() {
            return Ok(Prepared { digest, new: None });
        }
        compile::check_header(&bytes)?;
        // Asked again when it is kept; now, so that nothing is compiled in vain.
        is_fresh(store::module::check_limits(&self.store, tenant, &digest, bytes.len()).await?)?;
        let (ready, fresh) = match self.cached(digest).await? {
            Some(ready) => (ready, None),
            None => {
                let Compiled { code, ready, place } = self.compile(tenant, bytes.clone()).await?;
                (ready, Some((code, place)))
            }
        };
        let activities = host::describe(&self.engine, &ready.module).await.map_err(Error::Invalid)?;
        check_activities(&activities)?;
        // Only now: a component that is refused must not fill the disk.
        if let Some((code, place)) = fresh {
            self.keep(digest, code, place).await?;
        }
        let internal = |e: serde_json::Error| Error::Internal(e.to_string());
        let imports = serde_json::to_string(&ready.imports).map_err(internal)?;
        let activities = serde_json::to_string(&activities).map_err(internal)?;
        Ok(Prepared { digest, new: Some(New { bytes, imports, activities }) })
    }

    /// Validates, compiles, describes and stores a component that the operator brings.
    pub async fn upload(&self, tenant: &str, bytes: Bytes) -> Result<Uploaded, Error> {
        let prepared = self.prepare(tenant, bytes).await?;
        let fresh = prepared.store(&mut self.store.statement().await?, tenant, &By::Operator).await?;
        Ok(Uploaded { digest: prepared.digest, fresh })
    }

    /// The module ready to run: from memory, else from this node's disk, else compiled from the stored bytes.
    pub async fn load(&self, tenant: &str, digest: [u8; 32]) -> Result<Arc<Module>, Error> {
        let place = self.loaded.place(digest);
        let load = move || async move {
            let ready = self.load_cold(tenant, digest).await?;
            self.loaded.weigh(digest, ready.bytes);
            Ok::<_, Error>(ready.module)
        };
        Ok(place.get_or_try_init(load).await?.clone())
    }

    async fn load_cold(&self, tenant: &str, digest: [u8; 32]) -> Result<Ready, Error> {
        if let Some(ready) = self.cached(digest).await? {
            return Ok(ready);
        }
        let bytes = Bytes::from(store::module::load(&self.store, tenant, &digest).await?);
        let stored = bytes.clone();
        if blocking(move || Ok(*blake3::hash(&stored).as_bytes())).await? != digest {
            return Err(Error::Internal("the stored bytes are not those that were uploaded".to_owned()));
        }
        let Compiled { code, ready, place } = self.compile(tenant, bytes).await?;
        self.keep(digest, code, place).await?;
        Ok(ready)
    }

    /// From the compiled code on this node's disk.
    async fn cached(&self, digest: [u8; 32]) -> Result<Option<Ready>, Error> {
        let (engine, artefacts) = (self.engine.clone(), self.artefacts.clone());
        let work = move || {
            let component = artefacts.load(&engine, &digest).and_then(|code| code.component(&engine).ok());
            component.map(|component| ready(&engine, &component)).transpose()
        };
        blocking(work).await
    }

    /// Has a component compiled. When nobody waits for it any more, that is given up.
    async fn compile(&self, tenant: &str, bytes: Bytes) -> Result<Compiled, Error> {
        let place = self.places.take(tenant).await.map_err(|e| Error::Internal(e.to_string()))?;
        let stop = CancellationToken::new();
        let _stop_when_dropped = stop.clone().drop_guard();
        let (engine, compiler) = (self.engine.clone(), self.compiler.clone());
        // The place belongs to the work, not to who waits for it: it is free again when the process is gone.
        let work = move || {
            let code = compiler.compile(host::compatibility(engine.wasmtime()), &bytes, &stop)?;
            let code = Code::of_compiler(code);
            let ready = ready(&engine, &compile::load(&engine, &code)?)?;
            Ok(Compiled { code, ready, place })
        };
        blocking(work).await
    }

    /// Keeps compiled code on this node's disk.
    async fn keep(&self, digest: [u8; 32], code: Code, place: Place) -> Result<(), Error> {
        let (engine, artefacts) = (self.engine.clone(), self.artefacts.clone());
        let work = move || {
            artefacts.save(&engine, &digest, &code);
            drop(place);
            Ok(())
        };
        blocking(work).await
    }
}

/// Work that takes a processor or a disk for longer than the threads of requests and attempts may be kept.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, Error> + Send + 'static) -> Result<T, Error> {
    let work = tokio::task::spawn_blocking(work);
    work.await.map_err(|e| Error::Internal(format!("making a module ready failed: {e}")))?
}

/// Validates, compiles and describes a component as an upload does, and keeps nothing.
pub async fn inspect(engine: Arc<Engine>, bytes: Vec<u8>) -> Result<Vec<Descriptor>, Error> {
    compile::check_header(&bytes)?;
    let stop = CancellationToken::new();
    let _stop_when_dropped = stop.clone().drop_guard();
    let (for_work, compiler) = (engine.clone(), Compiler::new(engine.config()));
    let work = move || {
        let code = compiler.compile(host::compatibility(for_work.wasmtime()), &bytes, &stop)?;
        ready(&for_work, &compile::load(&for_work, &Code::of_compiler(code))?)
    };
    let activities = host::describe(&engine, &blocking(work).await?.module).await.map_err(Error::Invalid)?;
    check_activities(&activities)?;
    Ok(activities)
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
    let image = component.image_range();
    Ok(Ready {
        imports: compile::imports(engine, component)?,
        module: Arc::new(compile::link(engine, component)?),
        bytes: (image.end.addr() - image.start.addr()) as u64,
    })
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

pub(crate) fn check_name(name: &str) -> Result<(), Error> {
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
