//! `deedbox demo`: the story of the first page, with real processes. A worker is killed with SIGKILL after the provider has applied
//! its charge and before it could learn so; a second worker takes over; the provider's own books decide how it ended.
//!
//! Whatever happens, every process that was started is ended and the temporary directory is removed.

mod books;
mod children;
mod stage;
mod verdict;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::{Value, json};

use super::output::{self, Output, text};
use super::{os_signals, settings, wait};
use stage::Stage;

const ACTIVITY: &str = "charge-once";
const APPLIED_WITHIN: Duration = Duration::from_secs(60);
const ENDED_WITHIN: Duration = Duration::from_secs(90);

#[derive(Debug, Args)]
pub(super) struct Demo {
    /// The component of the example `charge-once`.
    #[arg(long, value_name = "FILE.wasm")]
    component: PathBuf,
    /// The program `deedbox-books`: a provider that keeps books.
    #[arg(long, value_name = "FILE")]
    books: PathBuf,
    /// Keep everything in this directory, which must be empty, instead of a temporary one.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

/// Tells the steps with the time since the start.
pub(super) struct Teller<'a> {
    output: &'a Output,
    begun: Instant,
}

impl Teller<'_> {
    fn tell(&self, words: &str) -> anyhow::Result<()> {
        let seconds = self.begun.elapsed().as_secs_f64();
        let value = json!({ "seconds": seconds, "step": words });
        self.output.show(&value, |_| format!("[{seconds:6.2} s] {words}"))
    }
}

impl Demo {
    pub(super) async fn run(self, output: &Output) -> anyhow::Result<()> {
        let stop = os_signals::stop()?;
        let teller = Teller { output, begun: Instant::now() };
        let component = settings::read(&self.component).await?;
        let mut stage = Stage::new(self.data_dir.clone())?;
        let told = match stage.start_postgres().await {
            Ok(()) => tokio::select! {
                told = self.story(&mut stage, component, &teller) => told,
                () = stop.cancelled() => Err(anyhow::anyhow!("the demo was interrupted")),
            },
            Err(error) => Err(error),
        };
        let told = told.map_err(|error| stage.with_logs(error));
        stage.end().await;
        let verdict = told?;
        let value = json!({ "demo": "one charge", "sends": verdict.sends, "wire_key": verdict.wire_key });
        output.show(&value, |_| format!("demo: one charge, {} sends, wire key {}", verdict.sends, verdict.wire_key))
    }

    async fn story(
        &self,
        stage: &mut Stage,
        component: Vec<u8>,
        teller: &Teller<'_>,
    ) -> anyhow::Result<verdict::Verdict> {
        teller.tell("a private PostgreSQL server runs")?;
        let books = stage.start_books(&self.books).await?;
        books.hold_next_answer().await?;
        teller.tell(&format!(
            "a provider listens at {}; it will hold back the answer to its first charge",
            books.address()
        ))?;
        let client = stage.start_api().await?;
        teller.tell(&format!("the API listens at {}", stage.api_address()))?;

        client.put(&["v1", "secrets", "stripe"], &json!({ "value": "sk_test_of_the_demo" })).await?;
        let module = client.upload(component.into(), None, |_| {}).await?;
        client.put(&["v1", "activities", ACTIVITY], &deployment(&module, books.address())).await?;
        teller.tell(&format!("activity {ACTIVITY} is deployed"))?;

        let first = stage.start_worker("worker-1").await?;
        let run =
            client.post(&["v1", "activities", ACTIVITY, "runs"], &json!({ "input": order(books.address()) })).await?;
        let run_id = text(&run, "/run_id");
        teller.tell(&format!("worker-1 works (process {}); run {run_id} is started", first.id()))?;

        books.wait_for_applied(APPLIED_WITHIN).await?;
        teller.tell("the provider has applied the charge; worker-1 does not know it yet")?;
        let status = first.kill().await?;
        teller.tell(&format!("worker-1 is killed: {status}"))?;
        books.release().await?;

        let second = stage.start_worker("worker-2").await?;
        teller.tell(&format!(
            "worker-2 works (process {}); it gets the run once the dead worker's lease is over",
            second.id()
        ))?;
        stage.keep(second);
        let ended = tokio::time::timeout(ENDED_WITHIN, wait::end(&client, &run_id, wait::SECONDS, |_| Ok(()))).await;
        let run = ended.map_err(|_| anyhow::anyhow!("run {run_id} did not end within {ENDED_WITHIN:?}"))??;
        let attempts = text(&run, "/attempts");
        teller.tell(&format!("the run is {} after {attempts} attempts: {}", text(&run, "/state"), run["output"]))?;

        let effects = client.get(&["v1", "runs", &run_id, "effects"], &[]).await?;
        let books = books.read().await?;
        if !teller.output.is_json() {
            output::line(&verdict::tables(&books, &effects))?;
        }
        verdict::judge(&run, &books, &effects)
    }
}

fn deployment(module: &Value, provider: &str) -> Value {
    json!({
        "module": module["digest"],
        "export": ACTIVITY,
        "policy": {
            "egress": { "allow": [provider] },
            "providers": { provider: "stripe" },
            "credentials": { "stripe": { "secret": "stripe", "account": "acct_demo" } },
            "retry": { "max_attempts": 5, "initial_interval": "100ms", "max_interval": "1s", "jitter": "none" },
        },
    })
}

fn order(provider: &str) -> Value {
    json!({ "order": "1042", "amount_cents": 4200, "customer": "cus_7", "provider_url": provider })
}
