//! `deedbox tenant signer`: adds, lists and removes the public keys whose signatures of modules count for a tenant.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::cli::client::Client;
use crate::cli::failure::Failure;
use crate::cli::output::{Output, items, text, time};
use crate::cli::page::{Page, Unasked};
use crate::cli::settings;
use crate::cli::table::Table;
use crate::signature::PublicKey;

#[derive(Debug, Args)]
pub(super) struct Signer {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Add a public key. A name keeps its key: to change it, add another and remove the old one.
    Add {
        tenant: String,
        /// How it is called.
        signer: String,
        /// An Ed25519 public key in a file: PEM, or 32 bytes as hexadecimal digits or in base64.
        file: PathBuf,
    },
    /// List the keys.
    List {
        tenant: String,
        #[command(flatten)]
        page: Page,
    },
    /// Remove a key: what only it has signed is not deployed any more where a signature is needed.
    Rm { tenant: String, signer: String },
}

impl Signer {
    pub(super) async fn run(self, client: &Client, output: &Output) -> anyhow::Result<()> {
        match self.command {
            Command::Add { tenant, signer, file } => {
                let key = String::from_utf8_lossy(&settings::read(&file).await?).into_owned();
                let wrong = |why| Failure::Usage(format!("{}: it {why}", file.display()));
                PublicKey::parse(&key).map_err(wrong)?;
                let path = ["v1", "tenants", &tenant, "signers", &signer];
                let added = client.put(&path, &json!({ "public_key": key })).await?;
                output.show(&added, |_| format!("what {signer} signs may be deployed for tenant {tenant}"))
            }
            Command::List { tenant, page } => {
                page.show(client, output, &["v1", "tenants", &tenant, "signers"], &[], Unasked::All, table).await
            }
            Command::Rm { tenant, signer } => {
                client.delete(&["v1", "tenants", &tenant, "signers", &signer]).await?;
                output.show(&json!({ "signer": signer }), |_| format!("signer {signer} is removed"))
            }
        }
    }
}

fn table(signers: &Value) -> String {
    let mut table = Table::new(&["signer", "public key", "added", "by…"]);
    for signer in items(signers) {
        table.row([
            text(signer, "/signer"),
            text(signer, "/public_key"),
            time(signer, "/created_at"),
            text(signer, "/added_by/label"),
        ]);
    }
    table.render("no signers: add one with `deedbox tenant signer add TENANT NAME FILE`")
}
