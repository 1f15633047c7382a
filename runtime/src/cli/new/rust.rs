//! What a project in Rust needs beyond the files of the SDK. The SDK is a member of this repository's workspace and takes versions
//! from it, so these go with it, and so do the exact versions that it was tested with.

use anyhow::Context;
use toml::{Table, Value};

const REPOSITORY: &str = include_str!("../../../../Cargo.toml");
const LOCK: &str = include_str!("../../../../Cargo.lock");
const SDK: &str = "deedbox-sdk/Cargo.toml";
const MACROS: &str = "deedbox-sdk/macros/Cargo.toml";

/// Makes the SDK a workspace of its own, and adds the lock file; cargo takes what is too much in it out by itself.
pub(super) fn complete(files: &mut Vec<(String, Vec<u8>)>) -> anyhow::Result<()> {
    let text = |files: &[(String, Vec<u8>)], path: &str| {
        let file = files.iter().find(|(it, _)| it == path).with_context(|| format!("{path} is not carried"))?;
        Ok::<_, anyhow::Error>(String::from_utf8(file.1.clone())?)
    };
    let (sdk, macros) = (text(files, SDK)?, text(files, MACROS)?);
    let workspace = workspace(&[&sdk, &macros])?;
    for (_, bytes) in files.iter_mut().filter(|(path, _)| path == SDK) {
        *bytes = format!("{sdk}\n{workspace}").into_bytes();
    }
    files.push(("Cargo.lock".to_owned(), LOCK.as_bytes().to_vec()));
    Ok(())
}

/// The part of the repository's manifest that these manifests take from it.
fn workspace(manifests: &[&str]) -> anyhow::Result<String> {
    let repository: Table = REPOSITORY.parse()?;
    let all = &repository["workspace"];
    let mut dependencies = Table::new();
    for manifest in manifests {
        for name in inherited(&manifest.parse()?) {
            let known = all["dependencies"].get(&name).with_context(|| format!("{name} has no version"))?;
            dependencies.insert(name, known.clone());
        }
    }
    if let Some(Value::Table(macros)) = dependencies.get_mut("deedbox-guest-macros") {
        macros.insert("path".to_owned(), "macros".into());
    }
    let mut workspace = Table::new();
    workspace.insert("members".to_owned(), Value::Array(vec!["macros".into()]));
    for (name, value) in [("resolver", &all["resolver"]), ("package", &all["package"]), ("lints", &all["lints"])] {
        workspace.insert(name.to_owned(), value.clone());
    }
    workspace.insert("dependencies".to_owned(), dependencies.into());
    Ok(toml::to_string(&Table::from_iter([("workspace".to_owned(), workspace.into())]))?)
}

/// The names of the dependencies whose version is the workspace's.
fn inherited(manifest: &Table) -> Vec<String> {
    let targets = manifest.get("target").and_then(Value::as_table).into_iter().flat_map(Table::values);
    let tables = targets.filter_map(|target| target.get("dependencies")).chain(manifest.get("dependencies"));
    let all = tables.filter_map(Value::as_table).flatten();
    let of_workspace = |value: &Value| value.get("workspace").and_then(Value::as_bool) == Some(true);
    all.filter(|(_, value)| of_workspace(value)).map(|(name, _)| name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sdk_stands_by_itself() {
        let sdk = "[dependencies]\nserde.workspace = true\ndeedbox-guest-macros.workspace = true\nown = \"1\"\n\
                   [target.'cfg(unix)'.dependencies]\nblake3 = { workspace = true }\n";
        let made: Table = workspace(&[sdk]).unwrap().parse().unwrap();
        let dependencies = made["workspace"]["dependencies"].as_table().unwrap();
        let names: Vec<&str> = dependencies.keys().map(String::as_str).collect();
        assert_eq!(names, ["blake3", "deedbox-guest-macros", "serde"]);
        assert_eq!(dependencies["deedbox-guest-macros"]["path"].as_str(), Some("macros"));
        assert!(made["workspace"]["package"]["edition"].is_str() && made["workspace"]["lints"].is_table());
        assert!(workspace(&["[dependencies]\nnot-there.workspace = true"]).is_err());
    }
}
