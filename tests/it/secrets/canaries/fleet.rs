//! The parts of a fleet as processes of their own, which log all that they can; and all that they have told or written.

use std::path::{Path, PathBuf};

use deedbox_books::Options;
use serde_json::{Value, json};
use tokio::process::Command;

use super::search::{Canary, Search};
use crate::api::client::{Answer, Client};
use crate::api::{GUESTS, mint};
use crate::cli::program::{Running, deedbox, finish};
use crate::harness::own_server::OwnServer;
use crate::harness::{TENANT, World, component, config};

pub struct Fleet {
    pub server: OwnServer,
    pub world: World,
    pub client: Client,
    pub canaries: Vec<Canary>,
    /// Answers of the API and what the programs printed.
    told: Vec<String>,
    serve: Option<Running>,
    worker: Option<Running>,
    /// How the parts get their master keys.
    pub keys: Vec<(&'static str, String)>,
    parts: usize,
}

impl Fleet {
    pub async fn start(keys: Vec<(&'static str, String)>) -> Self {
        let server = OwnServer::start().await;
        let database = server.migrated("canaries").await;
        let world = World::on(database, Options { keyless: false, convention: None }, config()).await;
        std::fs::create_dir_all(world.dir.path().join("written")).unwrap();
        write_settings(world.dir.path());
        let client = Client::new("http://127.0.0.1:1", Some(mint(&world, TENANT).await));
        let canaries = keys.iter().map(|(name, value)| Canary::new(name, value.clone())).collect();
        let told = Vec::new();
        let mut fleet = Self { server, world, client, canaries, told, serve: None, worker: None, keys, parts: 0 };
        fleet.begin().await;
        fleet
    }

    /// All that the parts may write: logs and compiled code.
    pub fn written(&self) -> PathBuf {
        self.world.dir.path().join("written")
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = deedbox(&["--log", "trace,deedbox=trace"]);
        command.args(arguments).env("DATABASE_URL", &self.world.database.url);
        for (name, value) in &self.keys {
            command.env(name, value);
        }
        command
    }

    fn part(&mut self, arguments: &[&str]) -> Running {
        self.parts += 1;
        let mut command = self.command(arguments);
        command.arg("--cache-dir").arg(self.written().join("cache"));
        command.arg("--config").arg(self.world.dir.path().join("settings.toml"));
        Running::start(command, self.written().join(format!("part-{}.log", self.parts)))
    }

    /// Starts what does not run.
    pub async fn begin(&mut self) {
        if self.serve.is_none() {
            let mut serve = self.part(&["serve", "--listen", "127.0.0.1:0"]);
            let address = serve.line().await.strip_prefix("listening on ").unwrap().to_owned();
            self.client = self.client.at(&address);
            self.serve = Some(serve);
        }
        if self.worker.is_none() {
            let mut worker = self.part(&["worker"]);
            worker.line().await;
            self.worker = Some(worker);
        }
    }

    pub async fn end(&mut self) {
        for part in [self.serve.take(), self.worker.take()].into_iter().flatten() {
            part.signal("TERM").await;
            let ended = part.end().await;
            assert_eq!(ended.code, Some(0), "{:?}", ended.code);
            self.told.push(ended.out);
        }
    }

    /// SIGKILL to the worker, and another in its place.
    pub async fn replace_worker(&mut self) {
        let worker = self.worker.take().unwrap();
        worker.signal("KILL").await;
        worker.end().await;
        self.begin().await;
    }

    /// A command to its end; what it said is kept.
    pub async fn finish(&mut self, arguments: &[&str]) {
        let ended = finish(self.command(arguments)).await;
        assert_eq!(ended.code, Some(0), "{ended:?}");
        self.told.extend([ended.out, ended.err]);
    }

    /// Keeps an answer that was given.
    pub fn keep(&mut self, answer: Answer) -> Answer {
        self.told.push(format!("{:?}\n{}", answer.headers, answer.text));
        answer
    }

    pub async fn get(&mut self, path: &str) -> Answer {
        let answer = self.client.get(path).await;
        self.keep(answer)
    }

    pub async fn put(&mut self, path: &str, body: &Value) -> Answer {
        let answer = self.keyed(reqwest::Method::PUT, path, body).await;
        self.keep(answer)
    }

    /// Under a request key, which is a canary, too.
    pub async fn keyed(&mut self, method: reqwest::Method, path: &str, body: &Value) -> Answer {
        let key = format!("canary-key-{}", uuid::Uuid::new_v4().simple());
        let request = self.client.request(method, path).header("idempotency-key", &key).json(body);
        self.canaries.push(Canary::new("a request key", key));
        self.client.send(request).await
    }

    pub async fn deploy(&mut self, activity: &str, policy: Value) {
        let uploaded = self.client.upload(component(GUESTS)).await;
        let module = self.keep(uploaded).json()["digest"].clone();
        let body = json!({ "module": module, "policy": policy });
        self.put(&format!("/v1/activities/{activity}"), &body).await.expect(201);
    }

    pub async fn begin_run(&mut self, activity: &str, body: &Value) -> String {
        let answer = self.keyed(reqwest::Method::POST, &format!("/v1/activities/{activity}/runs"), body).await;
        self.keep(answer).expect(201)["run_id"].as_str().unwrap().to_owned()
    }

    /// The run's output, once it has ended, and all that the API says of it.
    pub async fn ended(&mut self, run: &str) -> Value {
        for _ in 0..5 {
            let told = self.get(&format!("/v1/runs/{run}?wait=30")).await.expect(200);
            if told["ended_at"] == Value::Null {
                continue;
            }
            for what in ["/attempts", "/effects", "/log", "/signals", "/callback"] {
                self.get(&format!("/v1/runs/{run}{what}")).await;
            }
            assert_eq!(told["state"], "completed", "{told}");
            return told["output"].clone();
        }
        panic!("the run {run} does not end");
    }

    /// The database as text, by PostgreSQL's own program.
    pub fn dump(&self) -> Vec<u8> {
        let dumped = self.server.program("pg_dump").args(["--dbname", &self.world.database.url]).output().unwrap();
        assert!(dumped.status.success(), "{}", String::from_utf8_lossy(&dumped.stderr));
        assert!(String::from_utf8_lossy(&dumped.stdout).contains("COPY public.effects"));
        dumped.stdout
    }

    /// Keeps a text as if it had been told.
    pub fn plant(&mut self, text: String) {
        self.told.push(text);
    }

    /// Where canaries are, in all that was told or written.
    pub fn found(&self) -> Vec<String> {
        let search = Search::of(&self.canaries);
        let mut all = search.found("the dump", &self.dump());
        all.extend(search.found_below(&self.written()));
        all.extend(search.found("an answer", self.told.join("\n").as_bytes()));
        let log = self.server.pgdata().with_file_name("postgres.log");
        all.extend(search.found("PostgreSQL's log", &std::fs::read(log).unwrap()));
        all
    }
}

fn write_settings(dir: &Path) {
    let profiles = dir.join("profiles");
    std::fs::create_dir_all(&profiles).unwrap();
    let rest = [
        (
            "in-query",
            "credential = { query = \"api_key\" }\n[[operation]]\n[operation.key]\ncarrier = { header = \"Idempotency-Key\" }\n",
        ),
        ("in-header", "extends = \"stripe\"\nhosts = []\n"),
    ];
    for (name, rest) in rest {
        let text = format!("name = \"{name}\"\nversion = \"1\"\nsource = \"this test\"\n{rest}");
        std::fs::write(profiles.join(format!("{name}.toml")), text).unwrap();
    }
    let settings = format!(
        "worker = {{ lease_ms = 2000, poll_ms = 100 }}\n\
         gateway = {{ connect_ms = 500, profiles_dir = {:?} }}\n\
         host = {{ max_instances = 16 }}\n",
        profiles.to_str().unwrap()
    );
    std::fs::write(dir.join("settings.toml"), settings).unwrap();
}
