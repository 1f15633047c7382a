//! The keys of a fake run, derived as the host derives them, so that a test can state them as text.
//! Nothing here may be random: an unstable key in a test hides the bug that the test is for.

use uuid::Uuid;

const RUN_KEY: &str = "deedbox 2026 run key";
const SUBKEY: &str = "deedbox 2026 subkey";
const MAX_NAME_BYTES: usize = 256;

/// Why there is no fake context.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// Without a run id there is no stable key.
    #[error("a test context needs a run id, for its keys come from it: write a UUID into the test")]
    NoRunId,
    #[error("{0:?} is not a run id: write a lower-case hyphenated UUID into the test")]
    InvalidRunId(String),
}

#[derive(Debug)]
pub(super) struct Keys {
    run_key: [u8; 32],
}

impl Keys {
    pub fn derive(tenant: &str, run_id: &str) -> Result<Self, ConfigError> {
        if run_id.is_empty() {
            return Err(ConfigError::NoRunId);
        }
        match Uuid::parse_str(run_id) {
            Ok(uuid) if uuid.hyphenated().to_string() == run_id => {
                Ok(Self { run_key: hash(RUN_KEY, &[tenant.as_bytes(), run_id.as_bytes()]) })
            }
            _ => Err(ConfigError::InvalidRunId(run_id.to_owned())),
        }
    }

    pub fn run_key(&self) -> String {
        text(&self.run_key)
    }

    pub fn subkey(&self, name: &str) -> Option<String> {
        let allowed = (1..=MAX_NAME_BYTES).contains(&name.len());
        allowed.then(|| text(&hash(SUBKEY, &[&self.run_key, name.as_bytes()])))
    }
}

fn hash(context: &str, fields: &[&[u8]]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key(context);
    for field in fields {
        let length = u32::try_from(field.len()).unwrap_or(u32::MAX);
        hasher.update(&length.to_le_bytes());
        hasher.update(field);
    }
    *hasher.finalize().as_bytes()
}

fn text(key: &[u8; 32]) -> String {
    let mut half = [0; 16];
    half.copy_from_slice(&key[..16]);
    Uuid::new_v8(half).hyphenated().to_string()
}
