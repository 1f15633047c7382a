//! `naive HAZARD URL INPUT`: the activities of `examples/hazards` as they are often written at first, in plain HTTP.
//! Each does its job when nothing goes wrong, prints what came of it, and ends. The tests run it twice, to know that they
//! see a double where there is one. It must never use Deedbox, and nothing in it is to be copied.

use anyhow::{Context, Result, bail};
use clap::{Parser, ValueEnum};
use reqwest::{Client, Response};
use serde_json::{Value, json};
use uuid::Uuid;

#[derive(Parser)]
struct Arguments {
    #[arg(value_enum)]
    hazard: Hazard,
    /// Where the provider answers, without a path.
    url: String,
    /// The activity's input, in JSON.
    input: String,
}

#[derive(Clone, Copy, ValueEnum)]
#[value(rename_all = "snake_case")]
enum Hazard {
    InsertRow,
    /// Names the order, but lets the table take it twice.
    KeyWithoutCondition,
    /// Lets the table refuse what it has, but under a name that is new in every run.
    ConditionWithoutKey,
    ChargeCard,
    /// With the order number as the key.
    ChargeByOrder,
    /// With one key for all orders.
    ChargeUnderOneKey,
    SendEmail,
    IncrementCounter,
    PublishEvent,
    DeleteById,
    PutDocument,
    BusinessRejection,
    ReadOnly,
    OwnUuid,
    AppendToFile,
    ShipOnce,
}

#[tokio::main(flavor = "current_thread")]
#[allow(clippy::print_stdout, reason = "the result is this program's output")]
async fn main() -> Result<()> {
    // Built with the rest of the workspace, the HTTP library has TLS, and must be told by whom it is done.
    let _ = tokio_rustls::rustls::crypto::ring::default_provider().install_default();
    let Arguments { hazard, url, input } = Arguments::parse();
    let world = World { http: Client::new(), url, input: serde_json::from_str(&input).context("INPUT is JSON")? };
    println!("{}", world.run(hazard).await?);
    Ok(())
}

struct World {
    http: Client,
    url: String,
    input: Value,
}

impl World {
    async fn run(&self, hazard: Hazard) -> Result<Value> {
        match hazard {
            Hazard::InsertRow | Hazard::KeyWithoutCondition => self.post("/tables/orders/rows", &self.order()).await,
            Hazard::ConditionWithoutKey => self.insert_under_a_new_name().await,
            Hazard::ChargeCard => self.post("/v1/charges", &self.order()).await,
            Hazard::ChargeByOrder => self.charge(&format!("order-{}", self.input["order"])).await,
            Hazard::ChargeUnderOneKey => self.charge("charge").await,
            Hazard::SendEmail => self.post("/emails", &json!({ "to": self.input["to"], "subject": "Welcome" })).await,
            Hazard::IncrementCounter => self.increment_counter().await,
            Hazard::PublishEvent => self.publish_event().await,
            Hazard::DeleteById => self.delete_by_id().await,
            Hazard::PutDocument => self.put_document().await,
            Hazard::BusinessRejection => self.post("/v1/declined", &self.order()).await,
            Hazard::ReadOnly => self.read_only().await,
            Hazard::OwnUuid => self.charge(&Uuid::new_v4().to_string()).await,
            Hazard::AppendToFile => self.append_to_file().await,
            Hazard::ShipOnce => self.ship_once().await,
        }
    }

    fn order(&self) -> Value {
        json!({ "order": self.input["order"], "amount_cents": self.input["amount_cents"] })
    }

    async fn insert_under_a_new_name(&self) -> Result<Value> {
        let mut row = self.order();
        row["name"] = Uuid::new_v4().to_string().into();
        self.post("/tables/orders/rows?on_conflict=name", &row).await
    }

    async fn charge(&self, key: &str) -> Result<Value> {
        let charge = self.http.post(format!("{}/v1/charges", self.url)).header("idempotency-key", key);
        answered(charge.json(&self.order()).send().await?).await
    }

    async fn increment_counter(&self) -> Result<Value> {
        let path = format!("/counters/points-{}/increment", self.input["customer"]);
        self.post(&path, &json!({ "by": self.input["points"] })).await
    }

    async fn publish_event(&self) -> Result<Value> {
        let message = self.http.post(format!("{}/topics/orders/messages", self.url));
        let message = message.header("message-id", Uuid::new_v4().to_string());
        answered(message.json(&json!({ "placed": self.input["order"] })).send().await?).await
    }

    async fn delete_by_id(&self) -> Result<Value> {
        let row = format!("{}/tables/sessions/rows/{}", self.url, self.input["id"]);
        let answer = self.http.delete(row).send().await?;
        if answer.status().as_u16() == 404 {
            return Ok(Value::Null);
        }
        answered(answer).await
    }

    async fn put_document(&self) -> Result<Value> {
        let sales = self.input["sales_cents"].as_array().context("no sales")?;
        let total: u64 = sales.iter().filter_map(Value::as_u64).sum();
        let (year, month) = (&self.input["year"], self.input["month"].as_u64().context("no month")?);
        let document = self.http.put(format!("{}/objects/reports/{year}-{month:02}.json", self.url));
        answered(document.json(&json!({ "total_cents": total })).send().await?).await
    }

    async fn read_only(&self) -> Result<Value> {
        let found = self.get(&format!("/tables/customers/rows?customer={}", self.input["customer"])).await?;
        Ok(found["rows"][0]["values"]["email"].clone())
    }

    async fn append_to_file(&self) -> Result<Value> {
        let line = self.input["line"].as_str().context("no line")?.to_owned();
        let append = self.http.post(format!("{}/objects/audit.txt/append", self.url)).body(line);
        answered(append.send().await?).await
    }

    async fn ship_once(&self) -> Result<Value> {
        let known = self.get(&format!("/tables/shipments/rows?order={}", self.input["order"])).await?;
        if let Some(shipment) = known["rows"].get(0) {
            return Ok(shipment.clone());
        }
        self.post("/tables/shipments/rows", &json!({ "order": self.input["order"] })).await
    }

    async fn get(&self, path: &str) -> Result<Value> {
        answered(self.http.get(format!("{}{path}", self.url)).send().await?).await
    }

    async fn post(&self, path: &str, body: &Value) -> Result<Value> {
        answered(self.http.post(format!("{}{path}", self.url)).json(body).send().await?).await
    }
}

/// The answer's body. Every refusal is a failure, which whoever runs this program may try again.
async fn answered(answer: Response) -> Result<Value> {
    let status = answer.status();
    let text = answer.text().await?;
    if !status.is_success() {
        bail!("{status}: {text}");
    }
    Ok(serde_json::from_str(&text).unwrap_or_default())
}
