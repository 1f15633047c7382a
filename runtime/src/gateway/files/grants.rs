//! The directories that the operator has granted, opened once. Everything below goes through these handles: no path of
//! the host's own file system is ever built from what a tenant or a guest says.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::Dir;

use crate::config::FilesConfig;

/// Why the granted directories cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum GrantError {
    #[error("setting files.directories.{name}: the directory {path} cannot be opened: {source}; make it first")]
    Open { name: String, path: PathBuf, source: std::io::Error },
    #[error("setting files.directories.{name}: {rule}")]
    Invalid { name: String, rule: &'static str },
}

/// All of a node's granted directories.
#[derive(Debug, Default)]
pub struct Grants {
    by_name: BTreeMap<String, Grant>,
    max_file_bytes: usize,
}

#[derive(Debug)]
struct Grant {
    dir: Arc<Dir>,
    /// Empty: every tenant.
    tenants: Vec<String>,
}

impl Grants {
    /// Opens the directories that the settings name. They must be there.
    pub fn open_all(config: &FilesConfig) -> Result<Self, GrantError> {
        let mut by_name = BTreeMap::new();
        for (name, directory) in &config.directories {
            let invalid = |rule| GrantError::Invalid { name: name.clone(), rule };
            let known = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-');
            if name.is_empty() || !name.bytes().all(known) {
                return Err(invalid("its name must be of A-Z a-z 0-9 _ -"));
            }
            if !directory.path.is_absolute() {
                return Err(invalid("its path must be absolute"));
            }
            let opened = Dir::open_ambient_dir(&directory.path, ambient_authority());
            let failed = |source| GrantError::Open { name: name.clone(), path: directory.path.clone(), source };
            let grant = Grant { dir: Arc::new(opened.map_err(failed)?), tenants: directory.tenants.clone() };
            by_name.insert(name.clone(), grant);
        }
        Ok(Self { by_name, max_file_bytes: config.max_file_bytes })
    }

    /// A directory that this tenant may use. One that is another's is as one that is not there.
    pub fn open(&self, name: &str, tenant: &str) -> Result<Arc<Dir>, String> {
        let grant = self.by_name.get(name);
        let own = grant.filter(|grant| grant.tenants.is_empty() || grant.tenants.iter().any(|own| own == tenant));
        own.map(|grant| grant.dir.clone()).ok_or_else(|| {
            format!("the operator of this node grants no directory `{name}` to this tenant (files.directories.{name})")
        })
    }

    pub fn check_size(&self, bytes: usize) -> Result<(), String> {
        if bytes <= self.max_file_bytes {
            return Ok(());
        }
        Err(format!("the file has {bytes} bytes, the limit is {}", self.max_file_bytes))
    }
}
