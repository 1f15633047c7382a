//! `deedbox verify`: proves an activity against its own second run. It needs no server: the nodes, the providers and the database are
//! its own, in a temporary directory that goes when it ends.

use std::collections::BTreeSet;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use tempfile::TempDir;

use super::failure::Failure;
use super::output::{Output, line};
use super::settings::MASTER_KEY;
use super::table::Table;
use super::{deploy, os_signals, seed, settings, values};
use crate::gateway::vault::MasterKey;
use crate::verify::report::{Report, junit, text};
use crate::verify::{self, Group, Page, Plan, Provider};

/// Runs an activity with a death at each point, a lost lease, and providers in trouble, and compares what providers booked.
///
/// Exit codes: 0 nothing doubled and nothing lost; 1 something did; 2 it could not be tried. Everything else that is found is a
/// warning, and fails only with --strict.
#[derive(Debug, Args)]
pub(super) struct Verify {
    /// The component.
    #[arg(value_name = "FILE.wasm")]
    file: PathBuf,
    /// The input, as JSON or as @FILE.
    #[arg(long, value_name = "JSON")]
    input: String,
    /// The activity, where the component has several.
    #[arg(long, value_name = "NAME")]
    activity: Option<String>,
    /// Who stands for an origin: https://api.example.com=stripe; or stripe alone, for every origin that nothing else describes.
    #[arg(long = "provider", value_name = "[ORIGIN=]PROFILE")]
    providers: Vec<Provider>,
    /// The policy that it would be deployed with. Its retries are made quick, and its credentials are left out.
    #[arg(long, value_name = "FILE.toml")]
    policy: Option<PathBuf>,
    /// What a read of this address gets: URL=TEXT or URL=@FILE.
    #[arg(long = "page", value_name = "URL=TEXT", value_parser = page_argument)]
    pages: Vec<(url::Url, String)>,
    /// A signal that is there from the start.
    #[arg(long = "signal", value_name = "NAME=JSON", value_parser = pair)]
    signals: Vec<(String, String)>,
    /// Write the result as JUnit XML.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Warnings fail as well.
    #[arg(long)]
    strict: bool,
    /// Call the origins that no --provider stands for over the network. Each case calls them again.
    #[arg(long)]
    live: bool,
    /// Only these kinds of cases: repeat, crash, overlap, answers, order, keyless.
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    only: Vec<Group>,
    /// Cases at most.
    #[arg(long, value_name = "N", default_value_t = 500)]
    max_cases: usize,
    /// Seconds after which no further case is begun.
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    time: u64,
    /// Cases at once; as many as there are processors when absent, and at most 8.
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// A database to use instead of a private PostgreSQL server: on its server, databases are made and removed again.
    #[arg(long, value_name = "URL", hide_env_values = true)]
    database_url: Option<String>,
}

impl Verify {
    pub(super) async fn run(self, output: &Output) -> anyhow::Result<()> {
        let stop = os_signals::stop()?;
        let place = tempfile::Builder::new().prefix("deedbox-verify-").tempdir()?;
        // PostgreSQL may run as another user, who has to get through.
        std::fs::set_permissions(place.path(), Permissions::from_mode(0o755))?;
        let (server, database_url) = match self.database_url.clone() {
            Some(url) => (None, url),
            None => {
                output.note("starting a private PostgreSQL server");
                let (server, url) = seed::start_postgres(place.path()).await?;
                (Some(server), url)
            }
        };
        let verified = tokio::select! {
            verified = self.verify(output, &place, database_url) => verified,
            () = stop.cancelled() => Err(anyhow::anyhow!("stopped before it was done")),
        };
        if let Some(server) = server {
            server.stop().await;
        }
        self.told(output, &verified?)
    }

    async fn verify(&self, output: &Output, place: &TempDir, database_url: String) -> anyhow::Result<Report> {
        let plan = self.plan(place.path(), database_url).await?;
        verify::verify(plan, &|words| output.note(words)).await.map_err(|error| match error {
            verify::Error::Usage(_) | verify::Error::Component(_) => Failure::Usage(error.to_string()).into(),
            other => anyhow::Error::new(other),
        })
    }

    async fn plan(&self, dir: &Path, database_url: String) -> anyhow::Result<Plan> {
        let policy = match &self.policy {
            Some(file) => Some(deploy::checked_policy(file).await?),
            None => None,
        };
        let mut pages = Vec::new();
        for (url, given) in &self.pages {
            let text = match given.strip_prefix('@') {
                Some(file) => String::from_utf8_lossy(&settings::read(file.as_ref()).await?).into_owned(),
                None => given.clone(),
            };
            pages.push(Page { url: url.clone(), text });
        }
        let groups: BTreeSet<Group> = match self.only.as_slice() {
            [] => Group::ALL.into_iter().collect(),
            // Alone it would say which providers, and not what is done.
            [Group::Keyless] => Group::ALL.into_iter().collect(),
            some => some.iter().copied().collect(),
        };
        let processors = std::thread::available_parallelism().map_or(1, |count| count.get()).min(8);
        let master_key_file = dir.join(MASTER_KEY);
        MasterKey::read_or_create(&master_key_file)?;
        let own = dir.join("cases");
        std::fs::create_dir_all(&own)?;
        Ok(Plan {
            component: settings::read(&self.file).await?,
            activity: self.activity.clone(),
            input: values::json_text("--input", &self.input).await?.get().to_owned(),
            policy,
            providers: self.providers.clone(),
            pages,
            signals: self.signals.clone(),
            live: self.live,
            groups,
            max_cases: self.max_cases,
            time: Duration::from_secs(self.time),
            at_once: self.jobs.unwrap_or(processors),
            database_url,
            master_key_file,
            dir: own,
            compiler: None,
        })
    }

    fn told(&self, output: &Output, report: &Report) -> anyhow::Result<()> {
        if let Some(file) = &self.junit {
            let written = std::fs::write(file, junit(report, self.strict)?);
            written.with_context(|| format!("cannot write {}", file.display()))?;
        }
        if output.is_json() {
            line(&serde_json::to_string(report)?)?;
        } else {
            line(&text(report, table))?;
        }
        if report.is_bad(self.strict) { Err(Failure::Verdict.into()) } else { Ok(()) }
    }
}

fn table(titles: &[&'static str], rows: Vec<Vec<String>>) -> String {
    let mut table = Table::new(titles);
    rows.into_iter().for_each(|row| table.row(row));
    table.render("")
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => {
            serde_json::from_str::<serde::de::IgnoredAny>(value)
                .map_err(|error| format!("its payload is not JSON: {error}"))?;
            Ok((name.to_owned(), value.to_owned()))
        }
        _ => Err("it must be NAME=JSON, for example paid={\"by\":\"card\"}".to_owned()),
    }
}

/// The address may have `=` in its query: the text begins behind the last one that leaves an address before it, unless it is a file.
fn page_argument(text: &str) -> Result<(url::Url, String), String> {
    let wrong = || "it must be URL=TEXT or URL=@FILE".to_owned();
    let (url, text) = match text.split_once("=@") {
        Some((url, file)) => (url, format!("@{file}")),
        None => text.split_once('=').map(|(url, text)| (url, text.to_owned())).ok_or_else(wrong)?,
    };
    let url = url::Url::from_str(url).map_err(|error| format!("{error}: {}", wrong()))?;
    Ok((url, text))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::Cli;
    use super::*;

    #[test]
    fn the_arguments_say_what_is_verified() {
        let parse = |more: &[&str]| {
            let words = ["deedbox", "verify", "a.wasm", "--input", "{}"];
            Cli::try_parse_from(words.iter().chain(more)).map(drop)
        };
        parse(&["--provider", "https://a.test=stripe", "--provider", "keyless", "--only", "crash,order"]).unwrap();
        parse(&["--page", "https://a.test/x?a=@file", "--signal", "paid={}", "--junit", "f.xml", "--strict"]).unwrap();
        for wrong in [["--provider", "https://a.test"], ["--only", "all"], ["--signal", "paid"], ["--page", "x=y"]] {
            assert!(parse(&wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_page_is_an_address_and_a_text() {
        let page = |text: &str| page_argument(text).map(|(url, text)| (url.to_string(), text));
        assert_eq!(page("https://a.test/x=1,2"), Ok(("https://a.test/x".to_owned(), "1,2".to_owned())));
        let file = ("https://a.test/x?a=1".to_owned(), "@rows.csv".to_owned());
        assert_eq!(page("https://a.test/x?a=1=@rows.csv"), Ok(file));
    }
}
