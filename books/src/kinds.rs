//! The conventions of real providers, as far as they publish them. Where they publish nothing, the setting of
//! [`Convention::default`] stands, or the plainest answer of that provider's style. Small data: no behaviour may hide here.

use serde_json::{Map, Value, json};

use crate::carrier::{Carrier, Charset, Grammar};
use crate::convention::{Convention, InFlight, ObjectPath, OnMismatch, OnRepeat, Stores};
use crate::lookup::{List, LookUp};
use crate::template::Template;

const SECOND: u64 = 1000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
/// How long those wait that wait for a key in flight.
const WAIT_MS: u64 = 5 * SECOND;

/// A kind's name and its convention.
pub type Kind = (&'static str, fn() -> Convention);

/// Every kind.
pub const KINDS: &[Kind] = &[
    ("adyen", Convention::adyen),
    ("alibaba", Convention::alibaba),
    ("alpaca", Convention::alpaca),
    ("azure", Convention::azure),
    ("checkout", Convention::checkout),
    ("cloud_tasks", Convention::cloud_tasks),
    ("column", Convention::column),
    ("discord", Convention::discord),
    ("dynamodb", Convention::dynamodb),
    ("fullstory", Convention::fullstory),
    ("gcs", Convention::gcs),
    ("gocardless", Convention::gocardless),
    ("google_calendar", Convention::google_calendar),
    ("google_compute", Convention::google_compute),
    ("helcim", Convention::helcim),
    ("increase", Convention::increase),
    ("mercado_pago", Convention::mercado_pago),
    ("mollie", Convention::mollie),
    ("nats", Convention::nats),
    ("own_reference", Convention::own_reference),
    ("paypal", Convention::paypal),
    ("plaid", Convention::plaid),
    ("ppro", Convention::ppro),
    ("qonto", Convention::qonto),
    ("razorpay", Convention::razorpay),
    ("resend", Convention::resend),
    ("s3", Convention::s3),
    ("shopify", Convention::shopify),
    ("sns", Convention::sns),
    ("sqs", Convention::sqs),
    ("square", Convention::square),
    ("stripe", Convention::stripe),
    ("svix", Convention::svix),
    ("twilio", Convention::twilio),
    ("zuora", Convention::zuora),
];

impl Convention {
    pub fn stripe() -> Self {
        let mut it = Self { grammar: up_to(255), ..keyed("Idempotency-Key", &["POST"], DAY) };
        it.on_repeat = marked("idempotent-replayed");
        it.applied.headers.push(("idempotency-key".into(), "{key}".into()));
        it
    }

    pub fn adyen() -> Self {
        let mut it = Self { grammar: up_to(64), ..keyed("idempotency-key", &["POST"], 7 * DAY) };
        it.applied.headers.push(("idempotency-key".into(), "{key}".into()));
        it
    }

    pub fn fullstory() -> Self {
        let mut it = keyed("Idempotency-Key", &["POST"], None);
        it.on_mismatch = mismatch(409, json!({"code": "idempotency_key_conflict"}));
        it.stores = Stores::Not5xx;
        it
    }

    /// Every reuse is a conflict that names what was made.
    pub fn gocardless() -> Self {
        let links = json!({"conflicting_resource_id": "{id}"});
        let reason = "idempotent_creation_conflict";
        let error = json!({
            "type": "invalid_state", "code": 409, "reason": reason, "links": links,
            "errors": [{"reason": reason, "links": links}],
        });
        let conflict = Template::new(409, json!({ "error": error }));
        Self {
            on_repeat: OnRepeat::Conflict(conflict.clone()),
            on_mismatch: OnMismatch::Conflict,
            in_flight: InFlight::Answer(conflict),
            stores: Stores::Only2xx,
            id_prefix: "PM".into(),
            ..keyed("Idempotency-Key", &["POST"], 30 * DAY)
        }
    }

    /// No key is ever forgotten, and lists can be asked for one.
    pub fn increase() -> Self {
        let used = json!({"type": "idempotency_key_already_used_error", "status": 409, "resource_id": "{id}"});
        let list = List { around: Map::from_iter([("next_cursor".to_owned(), Value::Null)]), ..List::default() };
        Self {
            grammar: up_to(200),
            on_repeat: marked("idempotent-replayed"),
            on_mismatch: mismatch(409, used),
            in_flight: in_flight(409, json!({"type": "idempotency_key_in_use", "status": 409})),
            applied: Template::new(200, json!({"id": "{id}", "idempotency_key": "{key}", "request": "{request}"})),
            id_prefix: "object_".into(),
            look_ups: vec![LookUp::by_id(), LookUp::List(list)],
            ..keyed("Idempotency-Key", &["POST"], None)
        }
    }

    pub fn resend() -> Self {
        let error = |status: u16, name: &str| json!({"statusCode": status, "name": name});
        let mut it = keyed("Idempotency-Key", &["POST"], DAY);
        it.grammar = between(1, 256);
        it.invalid = Template::new(400, error(400, "invalid_idempotency_key"));
        it.on_mismatch = mismatch(409, error(409, "invalid_idempotent_request"));
        it.in_flight = in_flight(409, error(409, "concurrent_idempotent_requests"));
        it.applied = Template::new(200, json!({"id": "{id}"}));
        it.id_prefix = "email_".into();
        it.item = Some(json!({"object": "email", "id": "{id}", "to": "{request/to}", "subject": "{request/subject}"}));
        it
    }

    pub fn qonto() -> Self {
        Self {
            grammar: Grammar { charset: Charset::Uuid, ..Grammar::default() },
            on_mismatch: OnMismatch::Ignore,
            ..keyed("X-Qonto-Idempotency-Key", &["POST"], 30 * MINUTE)
        }
    }

    pub fn svix() -> Self {
        Self {
            on_mismatch: OnMismatch::Ignore,
            in_flight: waits(),
            stores: Stores::Only2xx,
            ..keyed("idempotency-key", &["POST"], 12 * HOUR)
        }
    }

    /// A repeat gets what has become of the order, which is approved as soon as it is made.
    pub fn paypal() -> Self {
        let order =
            |status: &str| json!({"id": "{id}", "status": status, "purchase_units": "{request/purchase_units}"});
        let issue = |name: &str, issue: &str| json!({"name": name, "details": [{ "issue": issue }]});
        Self {
            grammar: between(1, 108),
            on_repeat: OnRepeat::Latest(Template::new(200, order("APPROVED"))),
            on_mismatch: mismatch(422, issue("UNPROCESSABLE_ENTITY", "PAYPAL_REQUEST_ID_PREVIOUSLY_USED")),
            in_flight: in_flight(409, issue("RESOURCE_CONFLICT", "REQUEST_IN_PROGRESS")),
            stores: Stores::Not5xx,
            applied: Template::new(201, order("CREATED")),
            id_prefix: "ORDER-".into(),
            ..keyed("PayPal-Request-Id", &["POST"], 6 * HOUR)
        }
    }

    /// A repeat is accepted and dropped.
    pub fn sqs() -> Self {
        let grammar = Grammar { charset: Charset::VisibleAscii, ..between(1, 128) };
        Self {
            carrier: Carrier::Json("/MessageDeduplicationId".into()),
            grammar,
            on_repeat: OnRepeat::Accepted,
            on_mismatch: OnMismatch::Ignore,
            in_flight: waits(),
            stores: Stores::Only2xx,
            applied: Template::new(200, json!({"MessageId": "{id}", "SequenceNumber": "{number}"})),
            id_prefix: "message-".into(),
            look_ups: Vec::new(),
            ..keyed("", &["POST"], 5 * MINUTE)
        }
    }

    /// As SQS, but over the older form-encoded protocol.
    pub fn sns() -> Self {
        Self { carrier: Carrier::Form("MessageDeduplicationId".into()), ..Self::sqs() }
    }

    /// A message broker's duplicate window.
    pub fn nats() -> Self {
        Self {
            on_repeat: OnRepeat::Accepted,
            on_mismatch: OnMismatch::Ignore,
            ..keyed("Nats-Msg-Id", &["POST"], 2 * MINUTE)
        }
    }

    /// No key: a write may ask that there is no such object yet.
    pub fn s3() -> Self {
        let xml = |status: u16, code: &str| {
            let body = format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code></Error>");
            Template::new(status, body.into()).header("content-type", "application/xml")
        };
        Self {
            on_repeat: OnRepeat::Precondition(xml(412, "PreconditionFailed")),
            in_flight: InFlight::Answer(xml(409, "ConditionalRequestConflict")),
            object_path: Some(ObjectPath::default()),
            look_ups: Vec::new(),
            ..keyless()
        }
    }

    pub fn gcs() -> Self {
        let error = |status: u16, reason: &str| {
            Template::new(status, json!({"error": {"code": status, "errors": [{ "reason": reason }]}}))
        };
        Self {
            on_repeat: OnRepeat::Precondition(error(412, "conditionNotMet")),
            in_flight: InFlight::Answer(error(409, "conflict")),
            object_path: Some(ObjectPath { name_query: Some("name".into()) }),
            look_ups: Vec::new(),
            ..keyless()
        }
    }

    /// No key: a message can be found by whom it went to, from whom, and when.
    pub fn twilio() -> Self {
        let message = json!({
            "sid": "{id}", "to": "{request/To}", "from": "{request/From}", "body": "{request/Body}",
            "date_sent": "{at_rfc2822}", "status": "queued",
        });
        let list = List {
            envelope: "messages".into(),
            around: Map::from_iter([("page".to_owned(), json!(0))]),
            key_filter: None,
            date_filter: Some("DateSent".into()),
            ignored: ["Page", "PageSize", "PageToken"].map(str::to_owned).to_vec(),
        };
        Self {
            applied: Template::new(201, message),
            id_prefix: "SM".into(),
            look_ups: vec![LookUp::ById { suffix: ".json".into() }, LookUp::List(list)],
            ..keyless()
        }
    }

    /// No key: an object can be found by the reference that its maker gave it.
    pub fn own_reference() -> Self {
        let search = LookUp::Search {
            path: "/v1/search".into(),
            parameter: "reference".into(),
            pointer: "/reference".into(),
            envelope: "data".into(),
        };
        Self { look_ups: vec![search, LookUp::by_id(), LookUp::list()], ..keyless() }
    }

    pub fn checkout() -> Self {
        Self { stores: Stores::Only2xx, ..keyed("Cko-Idempotency-Key", &["POST"], DAY) }
    }

    pub fn column() -> Self {
        Self { stores: Stores::Only2xx, grammar: up_to(255), ..keyed("Idempotency-Key", &["POST"], None) }
    }

    /// Every answer is 200; what went wrong stands under the mutation's name.
    pub fn shopify() -> Self {
        let error = |code: &str| json!({"data": {"{field}": {"userErrors": [{"code": code, "message": code}]}}});
        let done = json!({"data": {"{field}": {"id": "{id}", "userErrors": []}}});
        Self {
            carrier: Carrier::GraphqlDirective { directive: "idempotent".into(), argument: "key".into() },
            on_mismatch: mismatch(200, error("IDEMPOTENCY_KEY_PARAMETER_MISMATCH")),
            in_flight: in_flight(200, error("IDEMPOTENCY_CONCURRENT_REQUEST")),
            applied: Template::new(200, done),
            id_prefix: "gid://shopify/Object/".into(),
            look_ups: Vec::new(),
            ..keyed("", &["POST"], None)
        }
    }

    /// The key is the name that the client chose.
    pub fn cloud_tasks() -> Self {
        let exists = Template::new(409, json!({"error": {"code": 409, "status": "ALREADY_EXISTS"}}));
        Self {
            carrier: Carrier::Json("/task/name".into()),
            grammar: Grammar { charset: Charset::AlphanumericAnd("_-".into()), last_segment: true, ..between(1, 500) },
            invalid: Template::new(400, json!({"error": {"code": 400, "status": "INVALID_ARGUMENT"}})),
            on_repeat: OnRepeat::Conflict(exists.clone()),
            on_mismatch: OnMismatch::Conflict,
            in_flight: InFlight::Answer(exists),
            stores: Stores::Only2xx,
            applied: Template::new(200, json!({"name": "{key}", "createTime": "{at}"})),
            look_ups: vec![LookUp::ByName { prefix: "/v2/".into() }],
            ..keyed("", &["POST"], DAY)
        }
    }

    /// The key is the id that the client chose for the event.
    pub fn google_calendar() -> Self {
        let duplicate = Template::new(409, json!({"error": {"code": 409, "errors": [{"reason": "duplicate"}]}}));
        Self {
            carrier: Carrier::Json("/id".into()),
            grammar: Grammar { charset: Charset::Base32Hex, ..between(5, 1024) },
            retention_ms: None,
            applied: Template::new(200, json!({"id": "{key}", "created": "{at}"})),
            on_repeat: OnRepeat::Conflict(duplicate.clone()),
            in_flight: InFlight::Answer(duplicate),
            ..Self::cloud_tasks()
        }
    }

    pub fn dynamodb() -> Self {
        let error = |name: &str| json!({"__type": format!("com.amazonaws.dynamodb.v20120810#{name}")});
        Self {
            carrier: Carrier::Json("/ClientRequestToken".into()),
            grammar: between(1, 36),
            invalid: Template::new(400, error("ValidationException")),
            on_mismatch: mismatch(400, error("IdempotentParameterMismatchException")),
            in_flight: in_flight(400, error("TransactionInProgressException")),
            stores: Stores::Only2xx,
            applied: Template::new(200, json!({})),
            item: Some(json!({"id": "{id}", "request": "{request}"})),
            ..keyed("", &["POST"], 10 * MINUTE)
        }
    }

    /// Two headers; both must be the same on a repeat.
    pub fn azure() -> Self {
        let rejected = |status: u16, code: &str| {
            Template::new(status, json!({"error": { "code": code }})).header("repeatability-result", "rejected")
        };
        let mut it = keyed("Repeatability-Request-ID", &["POST", "PUT", "PATCH", "DELETE"], 5 * MINUTE);
        it.companions = vec!["Repeatability-First-Sent".into()];
        it.grammar.charset = Charset::Uuid;
        it.invalid = rejected(400, "InvalidRepeatabilityHeaders");
        it.on_mismatch = OnMismatch::Answer(rejected(412, "RepeatabilityRequestMismatch"));
        it.applied = it.applied.header("repeatability-result", "accepted");
        it
    }

    pub fn google_compute() -> Self {
        let invalid = json!({"error": {"code": 400, "errors": [{"reason": "invalid"}]}});
        Self {
            carrier: Carrier::Query("requestId".into()),
            grammar: Grammar { charset: Charset::Uuid, ..between(1, 36) },
            invalid: Template::new(400, invalid),
            on_mismatch: OnMismatch::Ignore,
            in_flight: waits(),
            applied: Template::new(200, json!({"kind": "compute#operation", "id": "{number}", "name": "{id}"})),
            id_prefix: "operation-".into(),
            ..keyed("", &["POST", "PUT", "PATCH", "DELETE"], HOUR)
        }
    }

    pub fn square() -> Self {
        let error = |code: &str| json!({"errors": [{"category": "INVALID_REQUEST_ERROR", "code": code}]});
        Self {
            carrier: Carrier::Json("/idempotency_key".into()),
            grammar: between(1, 45),
            required: true,
            invalid: Template::new(400, error("INVALID_VALUE")),
            on_mismatch: mismatch(400, error("IDEMPOTENCY_KEY_REUSED")),
            stores: Stores::Only2xx,
            ..keyed("", &["POST"], None)
        }
    }

    pub fn plaid() -> Self {
        Self {
            carrier: Carrier::Json("/idempotency_key".into()),
            grammar: up_to(50),
            invalid: Template::new(400, json!({"error_type": "INVALID_REQUEST", "error_code": "INVALID_FIELD"})),
            on_mismatch: OnMismatch::Ignore,
            stores: Stores::Only2xx,
            applied: Template::new(200, json!({"id": "{id}", "request": "{request}"})),
            ..keyed("", &["POST"], 2 * DAY)
        }
    }

    pub fn razorpay() -> Self {
        let payout = |status: &str| json!({"id": "{id}", "status": status, "request": "{request}"});
        let error = json!({"error": {"code": "BAD_REQUEST_ERROR"}});
        Self {
            grammar: Grammar { charset: Charset::AlphanumericAnd("-_ ".into()), ..between(4, 36) },
            required: true,
            invalid: Template::new(400, error.clone()),
            on_repeat: OnRepeat::Latest(Template::new(200, payout("processed"))),
            on_mismatch: mismatch(400, error),
            applied: Template::new(200, payout("processing")),
            id_prefix: "pout_".into(),
            ..keyed("X-Payout-Idempotency", &["POST"], 7 * DAY)
        }
    }

    pub fn zuora() -> Self {
        Self {
            grammar: up_to(254),
            on_mismatch: mismatch(422, json!({"reasons": [{"code": "idempotency_key_mismatch"}]})),
            in_flight: in_flight(409, json!({"reasons": [{"code": "idempotency_key_in_use"}]})),
            ..keyed("idempotency-key", &["POST", "PATCH"], DAY)
        }
    }

    pub fn ppro() -> Self {
        let mut it = keyed("Request-Idempotency-Key", &["POST"], DAY);
        it.on_repeat = marked("request-idempotency");
        it.stores = Stores::Only2xx;
        it
    }

    pub fn alpaca() -> Self {
        let mut it = keyed("Idempotency-Key", &["POST"], None);
        it.grammar = up_to(128);
        it.on_mismatch = mismatch(422, json!({"message": "idempotency key was used with another request"}));
        it
    }

    pub fn mercado_pago() -> Self {
        Self { required: true, on_mismatch: OnMismatch::Ignore, ..keyed("X-Idempotency-Key", &["POST"], None) }
    }

    pub fn mollie() -> Self {
        keyed("Idempotency-Key", &["POST"], HOUR)
    }

    pub fn helcim() -> Self {
        Self { grammar: between(25, 36), ..keyed("idempotency-key", &["POST"], None) }
    }

    pub fn alibaba() -> Self {
        Self { grammar: up_to(50), ..keyed("X-Idempotent-Request-ID", &["POST"], 180 * SECOND) }
    }

    pub fn discord() -> Self {
        Self {
            carrier: Carrier::Json("/nonce".into()),
            grammar: up_to(25),
            on_mismatch: OnMismatch::Ignore,
            applied: Template::new(200, json!({"id": "{id}", "nonce": "{key}", "request": "{request}"})),
            ..keyed("", &["POST"], 3 * MINUTE)
        }
    }
}

/// The first answer replayed without a mark. Retention in milliseconds; none where none is published.
fn keyed(header: &str, methods: &[&str], retention_ms: impl Into<Option<u64>>) -> Convention {
    Convention {
        carrier: Carrier::Header(header.to_owned()),
        methods: methods.iter().map(|method| (*method).to_owned()).collect(),
        retention_ms: retention_ms.into(),
        on_repeat: OnRepeat::Replay { marker: None },
        look_ups: vec![LookUp::by_id(), LookUp::list()],
        ..Convention::default()
    }
}

fn keyless() -> Convention {
    Convention { carrier: Carrier::None, ..Convention::default() }
}

fn up_to(max: usize) -> Grammar {
    between(0, max)
}

fn between(min: usize, max: usize) -> Grammar {
    Grammar { min_length: min, max_length: Some(max), ..Grammar::default() }
}

fn marked(header: &str) -> OnRepeat {
    OnRepeat::Replay { marker: Some((header.to_owned(), "true".to_owned())) }
}

fn mismatch(status: u16, body: Value) -> OnMismatch {
    OnMismatch::Answer(Template::new(status, body))
}

fn in_flight(status: u16, body: Value) -> InFlight {
    InFlight::Answer(Template::new(status, body))
}

fn waits() -> InFlight {
    let then = Template::new(409, json!({"code": "in_progress"}));
    InFlight::Wait { ms: WAIT_MS, then }
}
