//! The request that stands for each shipped profile, and the provider that it is tried against. What a provider does comes
//! from the bookkeeping provider's own account of it, never from the profile under test.

use deedbox_books::{Carrier, Convention, LookUp};
use serde_json::{Value, json};

/// One profile and its provider.
pub struct Case {
    pub profile: &'static str,
    pub provider: Convention,
    pub method: &'static str,
    /// `{s}` becomes the scenario's name, where the address or the body is what the provider knows an effect by.
    pub path: &'static str,
    pub headers: Vec<(&'static str, &'static str)>,
    pub body: Body,
    /// The profile relies on the key.
    pub relies_on_key: bool,
    /// The profile knows the provider's answer for a key in flight to be one.
    pub knows_in_flight: bool,
    /// The profile knows that the provider keeps 5xx.
    pub knows_stored_5xx: bool,
    /// The provider can be asked whether it happened.
    pub asks: bool,
}

pub enum Body {
    Json(Value),
    Text(&'static str),
}

fn case(profile: &'static str, provider: Convention, path: &'static str) -> Case {
    let keyless = matches!(provider.carrier, Carrier::None);
    Case {
        profile,
        provider,
        method: "POST",
        path,
        headers: Vec::new(),
        body: Body::Json(json!({ "amount": 4200 })),
        relies_on_key: !keyless,
        knows_in_flight: false,
        knows_stored_5xx: false,
        asks: false,
    }
}

impl Case {
    fn json(self, body: Value) -> Self {
        Self { body: Body::Json(body), ..self }
    }

    fn form(self, body: &'static str) -> Self {
        let headers = vec![("content-type", "application/x-www-form-urlencoded")];
        Self { body: Body::Text(body), headers, ..self }
    }

    fn knows_in_flight(self) -> Self {
        Self { knows_in_flight: true, ..self }
    }

    fn target(mut self, target: &'static str) -> Self {
        self.headers.push(("x-amz-target", target));
        self
    }
}

/// A header that nobody else in the table has, replayed as it was.
fn in_header(name: &str) -> Convention {
    Convention { carrier: Carrier::Header(name.to_owned()), ..Convention::default() }
}

fn in_json(pointer: &str) -> Convention {
    Convention { carrier: Carrier::Json(pointer.to_owned()), ..Convention::default() }
}

fn no_key() -> Convention {
    Convention { carrier: Carrier::None, ..Convention::default() }
}

/// Every shipped profile but `unlisted`, which describes no provider.
pub fn all() -> Vec<Case> {
    let mut cases = headers();
    cases.extend(bodies());
    cases.extend(aws_and_google());
    cases.extend(keyless());
    cases
}

fn headers() -> Vec<Case> {
    vec![
        Case { knows_stored_5xx: true, ..case("stripe", Convention::stripe(), "/v1/charges").knows_in_flight() },
        case("adyen", Convention::adyen(), "/v71/payments"),
        case("alpaca", Convention::alpaca(), "/v2/orders"),
        case("chargebee", in_header("chargebee-idempotency-key"), "/api/v2/customers"),
        case("checkout", Convention::checkout(), "/payments"),
        case("column", Convention::column(), "/transfers/ach"),
        case("fullstory", Convention::fullstory(), "/v2/users"),
        case("generic", in_header("Idempotency-Key"), "/v1/things").knows_in_flight(),
        case("gocardless", Convention::gocardless(), "/payments"),
        case("helcim", Convention::helcim(), "/v2/payment/purchase"),
        Case { asks: true, ..case("increase", Convention::increase(), "/transfers") },
        case("mercado-pago", Convention::mercado_pago(), "/v1/payments"),
        case("modern-treasury", in_header("Idempotency-Key"), "/api/payment_orders"),
        case("mollie", Convention::mollie(), "/v2/payments").knows_in_flight(),
        case("paypal", Convention::paypal(), "/v2/checkout/orders"),
        case("ppro", Convention::ppro(), "/v1/payment-charges").knows_in_flight(),
        case("qonto", Convention::qonto(), "/v2/external_transfers"),
        case("razorpayx", Convention::razorpay(), "/v1/payouts"),
        case("resend", Convention::resend(), "/emails").knows_in_flight(),
        case("svix", Convention::svix(), "/api/v1/app/app_1/msg"),
        case("truelayer", in_header("Idempotency-Key"), "/v3/payments"),
        case("zuora", Convention::zuora(), "/v1/subscriptions").knows_in_flight(),
        case("azure-repeatable", Convention::azure(), "/widgets"),
    ]
}

fn bodies() -> Vec<Case> {
    let mutation = "mutation { refundCreate(input: {orderId: \"1\"}) @idempotent(key: \"x\") { refund { id } userErrors { code } } }";
    vec![
        case("square", Convention::square(), "/v2/payments"),
        case("plaid", Convention::plaid(), "/transfer/create"),
        case("wise", in_json("/customerTransactionId"), "/v1/transfers"),
        case("discord", Convention::discord(), "/api/v10/channels/1/messages")
            .json(json!({ "content": "hello", "enforce_nonce": true })),
        case("shopify", Convention::shopify(), "/admin/api/2026-04/graphql.json")
            .json(json!({ "query": mutation }))
            .knows_in_flight(),
    ]
}

fn aws_and_google() -> Vec<Case> {
    let queue =
        json!({ "QueueUrl": "https://sqs.example.test/1/orders.fifo", "MessageBody": "x", "MessageGroupId": "g" });
    let events = "/calendar/v3/calendars/primary/events";
    let look_ups = vec![LookUp::ByName { prefix: format!("{events}/") }];
    let mut calendar = case("google-calendar", Convention { look_ups, ..Convention::google_calendar() }, events);
    (calendar.relies_on_key, calendar.asks) = (false, true);
    let tasks = "/v2/projects/p/locations/l/queues/q/tasks";
    vec![
        calendar,
        case("google-compute", Convention::google_compute(), "/compute/v1/projects/p/zones/z/instances"),
        Case {
            asks: true,
            ..case("cloud-tasks", Convention::cloud_tasks(), tasks).json(json!({ "task": { "httpRequest": {} } }))
        },
        case("dynamodb", Convention::dynamodb(), "/").target("DynamoDB_20120810.TransactWriteItems").knows_in_flight(),
        case("sqs", Convention::sqs(), "/").target("AmazonSQS.SendMessage").json(queue),
        case("sns", Convention::sns(), "/")
            .form("Action=Publish&TopicArn=arn%3Aaws%3Asns%3Aeu%3A1%3Aorders.fifo&Message=x&MessageGroupId=g"),
        case("secrets-manager", in_json("/ClientRequestToken"), "/")
            .target("secretsmanager.PutSecretValue")
            .json(json!({ "SecretId": "s", "SecretString": "x" })),
        Case {
            method: "PUT",
            relies_on_key: true,
            asks: true,
            body: Body::Text("contents"),
            ..case("s3", Convention::s3(), "/bucket/{s}.txt").knows_in_flight()
        },
        Case {
            relies_on_key: true,
            body: Body::Text("contents"),
            ..case("gcs", Convention::gcs(), "/upload/storage/v1/b/bucket/o?uploadType=media&name={s}.txt")
        },
    ]
}

fn keyless() -> Vec<Case> {
    let twilio = case("twilio", Convention::twilio(), "/2010-04-01/Accounts/AC1/Messages.json");
    vec![
        Case { asks: true, ..twilio.form("To=%2B15550001&From=%2B15550002&Body={s}") },
        case("sendgrid", no_key(), "/v3/mail/send"),
        case("github", no_key(), "/repos/o/r/issues"),
        case("braintree", no_key(), "/merchants/m/transactions"),
        case("openai", no_key(), "/v1/responses"),
        case("anthropic", no_key(), "/v1/messages"),
        case("keyless", no_key(), "/v1/things"),
    ]
}
