//! `deedbox module`: uploads modules and looks at them, says what is to be signed of one, and attaches what was signed
//! elsewhere. No private key ever comes here.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::client::Client;
use super::deploy::upload;
use super::failure::Failure;
use super::output::{Output, items, text, time};
use super::page::{Page, Unasked};
use super::settings::{self, Remote};
use super::table::{Table, pairs};
use crate::signature::{self, SIGNATURE_BYTES, Signature};

#[derive(Debug, Args)]
pub(super) struct Module {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    remote: Remote,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the modules (the default).
    List(Page),
    /// Show one module: who brought it, who signed it, what it imports and offers.
    Show { digest: String },
    /// Upload a component and deploy nothing of it.
    Upload {
        #[arg(value_name = "FILE.wasm")]
        file: PathBuf,
        /// A signature of it, in a file: 64 bytes, or the same as hexadecimal digits or in base64.
        #[arg(long, value_name = "FILE")]
        signature: Option<PathBuf>,
    },
    /// Print the digest of a component on this machine, or what a signer signs for it. No server is asked.
    Digest {
        #[arg(value_name = "FILE.wasm")]
        file: PathBuf,
        /// Print what is to be signed, to the byte.
        #[arg(long)]
        message: bool,
    },
    /// Attach a signature that was made elsewhere to a module that is there.
    Sign {
        digest: String,
        /// The signature: 64 bytes, or the same as hexadecimal digits or in base64.
        #[arg(long, value_name = "FILE")]
        signature: PathBuf,
    },
    /// Remove a module that no version of an activity uses.
    Rm { digest: String },
}

impl Module {
    pub(super) async fn run(self, output: &Output) -> anyhow::Result<()> {
        if let Some(Command::Digest { file, message }) = &self.command {
            return digest(file, *message, output).await;
        }
        let client = Client::tenant(&self.remote)?;
        match self.command.unwrap_or_else(|| Command::List(Page::default())) {
            Command::List(page) => page.show(&client, output, &["v1", "modules"], &[], Unasked::All, table).await,
            Command::Show { digest } => output.show(&client.get(&["v1", "modules", &digest], &[]).await?, show),
            Command::Upload { file, signature } => {
                let module = upload(&client, output, &file, signature.as_deref()).await?;
                output.show(&module, |_| "Deploy it with: deedbox deploy FILE.wasm".to_owned())
            }
            Command::Sign { digest, signature } => {
                let signature = read_signature(&signature).await?.to_hex();
                let path = ["v1", "modules", &digest, "signature"];
                let module = client.put(&path, &json!({ "signature": signature })).await?;
                output.show(&module, show)
            }
            Command::Rm { digest } => {
                client.delete(&["v1", "modules", &digest]).await?;
                output.show(&json!({ "digest": digest }), |_| format!("module {digest} is removed"))
            }
            Command::Digest { .. } => Ok(()),
        }
    }
}

async fn digest(file: &Path, message: bool, output: &Output) -> anyhow::Result<()> {
    let digest = *blake3::hash(&settings::read(file).await?).as_bytes();
    let signed = signature::message(&digest);
    let hex = signed.lines().nth(1).unwrap_or_default();
    let shown = if message { signed.clone() } else { hex.to_owned() };
    output.show(&json!({ "digest": hex, "message": signed }), |_| shown)
}

/// A signature as a signer's program has written it: its bytes or a text.
pub(super) async fn read_signature(file: &Path) -> anyhow::Result<Signature> {
    let bytes = settings::read(file).await?;
    if let Ok(bytes) = <[u8; SIGNATURE_BYTES]>::try_from(bytes.as_slice()) {
        return Ok(Signature(bytes));
    }
    let wrong = |why| Failure::Usage(format!("{}: it {why}", file.display()));
    Ok(Signature::parse(&String::from_utf8_lossy(&bytes)).map_err(wrong)?)
}

/// Who did something: the token's label and its id, or the kind where it was no token.
pub(super) fn actor(value: &Value, pointer: &str) -> String {
    let of = |member: &str| text(value, &format!("{pointer}/{member}"));
    match (of("label"), of("token_id")) {
        (_, id) if id.is_empty() => of("kind"),
        (label, id) if label.is_empty() => id,
        (label, id) => format!("{label} ({id})"),
    }
}

/// The names of those whose signatures count.
fn signers(module: &Value) -> String {
    let signatures = module["signatures"].as_array().into_iter().flatten();
    let counting = signatures.filter(|signature| signature["counts"] == json!(true));
    counting.map(|signature| text(signature, "/signer")).collect::<Vec<_>>().join(" ")
}

fn table(modules: &Value) -> String {
    let mut table = Table::new(&["module", "bytes", "uploaded", "by…", "signed by…"]);
    for module in items(modules) {
        table.row([
            text(module, "/digest"),
            text(module, "/size_bytes"),
            time(module, "/created_at"),
            actor(module, "/uploaded_by"),
            signers(module),
        ]);
    }
    table.render("no modules: upload one with `deedbox deploy FILE.wasm`")
}

fn show(module: &Value) -> String {
    let list = |member: &str, name: &str| {
        let all = module[member].as_array().into_iter().flatten();
        all.map(|one| text(one, name)).collect::<Vec<_>>().join(" ")
    };
    let rows = [
        ("module", text(module, "/digest")),
        ("bytes", text(module, "/size_bytes")),
        ("uploaded", time(module, "/created_at")),
        ("by", actor(module, "/uploaded_by")),
        ("activities", list("activities", "/name")),
        ("imports", list("imports", "")),
    ];
    let mut table = Table::new(&["signed by", "counts", "public key", "attached", "by…"]);
    for signature in module["signatures"].as_array().into_iter().flatten() {
        let counts = if signature["counts"] == json!(true) { "yes" } else { "no: its key was removed" };
        table.row([
            text(signature, "/signer"),
            counts.to_owned(),
            text(signature, "/public_key"),
            time(signature, "/attached_at"),
            actor(signature, "/attached_by"),
        ]);
    }
    format!("{}\n{}", pairs(&rows), table.render("no signatures"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_is_shown_with_who_brought_and_who_signed_it() {
        let signature = |signer: &str, counts: bool| json!({ "signer": signer, "counts": counts, "public_key": "ab" });
        let module = json!({
            "digest": "d1", "imports": ["a:b/c"], "activities": [{ "name": "charge" }],
            "uploaded_by": { "kind": "token", "token_id": "t1", "label": "ci" },
            "signatures": [signature("release", true), signature("old", false)],
        });
        let shown = show(&module);
        for part in ["ci (t1)", "charge", "a:b/c", "release", "no: its key was removed"] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        assert_eq!(signers(&module), "release");
        let listed = table(&json!({ "items": [module] }));
        assert!(listed.contains("release") && !listed.contains("old"), "{listed}");
    }

    #[test]
    fn whoever_did_something_is_named_as_far_as_it_is_known() {
        let by = |value: Value| actor(&json!({ "by": value }), "/by");
        assert_eq!(by(json!({ "kind": "operator", "token_id": null, "label": null })), "operator");
        assert_eq!(by(json!({ "kind": "token", "token_id": "t1", "label": "" })), "t1");
        assert_eq!(by(json!({ "kind": "token", "token_id": "t1", "label": "ci" })), "ci (t1)");
    }

    #[tokio::test]
    async fn a_signature_is_read_as_it_was_written() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("module.sig");
        for text in [vec![0xfb; 64], format!("{}\n", "fb".repeat(64)).into_bytes()] {
            std::fs::write(&file, text).unwrap();
            assert_eq!(read_signature(&file).await.unwrap(), Signature([0xfb; 64]));
        }
        std::fs::write(&file, [0xfb; 63]).unwrap();
        let error = read_signature(&file).await.unwrap_err().to_string();
        assert!(error.contains("64 bytes") && error.contains("module.sig"), "{error}");
    }
}
