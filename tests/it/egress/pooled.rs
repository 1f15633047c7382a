//! Nothing of one call is left for another, of the same tenant or of its neighbour.

use serde_json::{Value, json};

use super::capture::{Capture, values};
use crate::api::client::Client;
use crate::api::{Api, GUESTS};
use crate::harness::component;

/// A tenant with a profile `pay` of its own at its own host, and its own secret.
struct Tenant {
    client: Client,
    provider: Capture,
    header: &'static str,
    secret: &'static str,
}

impl Tenant {
    async fn new(client: Client, header: &'static str, secret: &'static str) -> Self {
        let cookie = "200 OK\r\nset-cookie: session=canary; Path=/\r\n";
        let tenant = Self { client, provider: Capture::answering(move |_| cookie.to_owned()).await, header, secret };
        let profile = format!(
            "name = \"pay\"\nversion = \"1\"\nsource = \"this test\"\nhosts = [\"localhost\"]\n\
             credential = {{ header = \"{header}\" }}\n[[operation]]\n[operation.key]\ncarrier = {{ header = \"{header}-Key\" }}\n"
        );
        let client = &tenant.client;
        client.put("/v1/providers/pay", &json!({ "profile": profile })).await.expect(201);
        client.put("/v1/secrets/key", &json!({ "value": secret })).await.expect(204);
        let module = client.upload(component(GUESTS)).await.json()["digest"].clone();
        let egress = json!({ "allow": [tenant.provider.named()], "private_addresses": ["127.0.0.1", "::1"] });
        let credentials = json!({ "pay": { "secret": "key", "account": "main" } });
        let policy = json!({ "egress": egress, "credentials": credentials, "retry": { "max_attempts": 1 } });
        let deployed =
            client.put("/v1/activities/send", &json!({ "module": module, "policy": policy })).await.expect(201);
        assert_eq!(deployed["policy"]["providers"][tenant.provider.named()], "pay", "{deployed}");
        tenant
    }

    /// Starts a run with two calls; gives its id.
    async fn start(&self) -> String {
        let call = |name: &str| {
            let url = format!("{}/v1/charges", self.provider.named());
            json!({ "method": "POST", "url": url, "json": {}, "identity": { "named": name } })
        };
        let input = json!({ "calls": [call("a"), call("b")] });
        let run = self.client.post("/v1/activities/send/runs", &json!({ "input": input })).await.expect(201);
        run["run_id"].as_str().unwrap().to_owned()
    }

    async fn output(&self, run: &str) -> Value {
        self.client.get(&format!("/v1/runs/{run}")).await.expect(200)["output"].clone()
    }
}

/// F-E16: two tenants at one host name on one node, each with a profile of the same name.
#[tokio::test(flavor = "multi_thread")]
async fn cookies_and_credentials_of_one_call_are_in_no_other() {
    let api = Api::idle().await;
    let acme = Tenant::new(api.acme.clone(), "X-Acme", "canary-acme-61c2").await;
    let other = Tenant::new(api.tenant("other").await, "X-Other", "canary-other-90d7").await;
    for _ in 0..2 {
        let runs = [(&acme, acme.start().await), (&other, other.start().await)];
        api.work().await;
        for (tenant, run) in runs {
            let output = tenant.output(&run).await;
            assert_eq!([&output[0]["status"], &output[1]["status"]], [200, 200], "{output}");
        }
    }
    for (own, neighbour) in [(&acme, &other), (&other, &acme)] {
        let seen = own.provider.seen();
        assert_eq!(seen.len(), 4, "each call has a connection of its own: {seen:?}");
        for request in &seen {
            assert_eq!(values(request, "host"), [own.provider.named().replace("http://", "")]);
            assert_eq!(values(request, own.header), [own.secret]);
            assert!(values(request, "cookie").is_empty() && !request.contains("session"), "{request}");
            assert!(!request.contains(neighbour.secret) && values(request, neighbour.header).is_empty(), "{request}");
        }
    }
}
