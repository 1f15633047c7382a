//! The laws that every carrier keeps, on made-up requests.

use proptest::prelude::*;
use serde_json::value::RawValue;

use super::tests::Sent;
use super::{Carrier, Parts};

const URL: &str = "https://api.example/v1/things";

/// Blanks that JSON allows between tokens.
fn blank() -> impl Strategy<Value = String> {
    "[ \t\r\n]{0,2}"
}

/// A JSON value as someone may have written it: numbers that floats cannot hold, escapes, blanks.
fn value() -> impl Strategy<Value = String> {
    let plain = prop_oneof![
        Just("1.0".to_owned()),
        Just("-0".to_owned()),
        Just("9007199254740993".to_owned()),
        Just("1E+2".to_owned()),
        Just("null".to_owned()),
        Just(r#""\u00e9\/\n \ud83d\ude00""#.to_owned()),
        "\"[a-z{}\\[\\],:é]{0,6}\"",
    ];
    plain.prop_recursive(3, 12, 3, |inner| {
        let list = prop::collection::vec(inner.clone(), 0..3).prop_map(|items| format!("[ {} ]", items.join(" ,")));
        prop_oneof![list, object(name(), inner)]
    })
}

/// Names that are not the key's and not on the way to it, as they stand between quotes.
fn name() -> impl Strategy<Value = String> {
    prop_oneof!["[a-c]{1,2}", Just("é".to_owned()), Just("\\u00e9".to_owned()), Just("x\\\"y".to_owned())]
}

fn object(
    name: impl Strategy<Value = String> + 'static,
    value: impl Strategy<Value = String> + 'static,
) -> BoxedStrategy<String> {
    let member = (blank(), name, blank(), blank(), value, blank());
    let members = prop::collection::vec(member, 0..4);
    let text = members.prop_map(|members| {
        let written = members.iter().map(|(a, name, b, c, value, d)| format!("{a}\"{name}\"{b}:{c}{value}{d}"));
        written.collect::<Vec<_>>().join(",")
    });
    (text, blank()).prop_map(|(text, blank)| format!("{{{text}{blank}}}")).boxed()
}

/// An object that may have the key already, once or more often.
fn body() -> impl Strategy<Value = String> {
    let names = prop_oneof![3 => name(), 1 => Just("key".to_owned()), 1 => Just("k\\u0065y".to_owned())];
    object(names, value())
}

/// An object with at most one member `way`, which may be missing, null or an object with or without the key.
fn nested_body() -> impl Strategy<Value = String> {
    let way = prop_oneof![Just(None), Just(Some("null".to_owned())), body().prop_map(Some)];
    (way, object(name(), value())).prop_map(|(way, object)| match way {
        Some(way) if object.contains(':') => format!("{{\"way\" :{way},{}", &object[1..]),
        Some(way) => format!("{{\"way\" :{way}}}"),
        None => object,
    })
}

fn pairs() -> impl Strategy<Value = String> {
    let name = prop_oneof!["[a-z]{0,3}", Just("key".to_owned()), Just("k%65y".to_owned()), Just("%c3%A9".to_owned())];
    let pair = (name, "(=[a-z+%]{0,4})?").prop_map(|(name, value)| format!("{name}{value}"));
    prop::collection::vec(pair, 0..5).prop_map(|pairs| pairs.join("&"))
}

/// A mutation, with a directive or without, and the variables of its request.
fn mutation() -> impl Strategy<Value = String> {
    let directive = prop_oneof![
        Just(""),
        Just(" @once"),
        Just(" @once(key: \\\"old\\\")"),
        Just("@once(key:7)"),
        Just(" @once(by: 1, key: \\\"\\u006fld\\\" more: [1])"),
        Just(" @once(key: $k)"),
        Just(" @skip(if: false) @once(key: $k)"),
    ];
    let arguments = prop_oneof![Just(""), Just("(a: \\\"\\u00e9ü\\ud83d\\ude00\\\")"), Just("(a:{b:[$k]})")];
    let rest = prop_oneof![Just(""), Just("{id}"), Just("\\n  # a \\\" comment é\\n{ id, key }")];
    let variables =
        prop_oneof![Just(""), Just(", \"variables\":null"), Just(",\"variables\":{\"k\":\"old\", \"n\":1.0}")];
    (directive, arguments, rest, variables, blank()).prop_map(|(directive, arguments, rest, variables, blank)| {
        format!("{{{blank}\"query\":\"mutation M($k: S) {{ e: f{arguments}{directive} {rest} }}\"{variables}}}")
    })
}

/// A carrier, and a request that can take it.
fn carried() -> impl Strategy<Value = (Carrier, Sent)> {
    let sent = |body: String| Sent::new(URL, &[("b", "c")], &body);
    let once = || Carrier::GraphqlDirective { directive: "once".into(), argument: "key".into() };
    prop_oneof![
        prop::collection::vec("[a-z\"]{0,4}", 0..3).prop_map(|values| {
            let headers: Vec<_> =
                [("a", "b")].into_iter().chain(values.iter().map(|it| ("key", it.as_str()))).collect();
            (Carrier::Header("Key".into()), Sent::new(URL, &headers, "body"))
        }),
        pairs().prop_map(|query| (Carrier::Query("key".into()), Sent::new(&format!("{URL}?{query}#f"), &[], "body"))),
        pairs().prop_map(move |body| (Carrier::Form("key".into()), sent(body))),
        body().prop_map(move |body| (Carrier::Json("/key".into()), sent(body))),
        nested_body().prop_map(move |body| (Carrier::Json("/way/key".into()), sent(body))),
        mutation().prop_map(move |body| (once(), sent(body))),
        mutation().prop_map(move |body| (Carrier::GraphqlVariable("k".into()), sent(body))),
        ("[a-z%]{0,4}/[a-z]{0,4}", 0..2_usize).prop_map(|(path, at)| {
            (Carrier::Path(at), Sent::new(&format!("https://api.example/{}?q", path.replace('%', "%20")), &[], "body"))
        }),
    ]
}

/// A wire key, or what a guest made up.
fn key() -> impl Strategy<Value = String> {
    prop_oneof!["[0-9a-f]{8}-[0-9a-f]{4}", "[!-~&&[^\"\\\\]]{3,12}"]
}

/// The members of an object but one, as they are written.
fn others(body: &str, but: &str) -> Vec<(String, String)> {
    struct Members(Vec<(String, String)>);
    impl<'de> serde::Deserialize<'de> for Members {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            struct Each;
            impl<'de> serde::de::Visitor<'de> for Each {
                type Value = Members;
                fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    f.write_str("an object")
                }
                fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                    let mut all = Vec::new();
                    while let Some((name, value)) = map.next_entry::<String, &RawValue>()? {
                        all.push((name, value.get().to_owned()));
                    }
                    Ok(Members(all))
                }
            }
            deserializer.deserialize_map(Each)
        }
    }
    let Members(all) = serde_json::from_str(body).unwrap();
    all.into_iter().filter(|(name, _)| name != but).collect()
}

proptest! {
    #[test]
    fn what_was_put_in_is_read_back((carrier, request) in carried(), key in key()) {
        let sent = request.with(&carrier, &key).unwrap();
        prop_assert_eq!(sent.read(&carrier), Some(key));
    }

    #[test]
    fn requests_that_differ_only_in_the_key_become_equal((carrier, request) in carried(), a in key(), b in key()) {
        let stripped = |sent: Sent| sent.stripped(&carrier).unwrap();
        let (with_a, with_b) = (request.with(&carrier, &a).unwrap(), request.with(&carrier, &b).unwrap());
        prop_assert_eq!(stripped(with_a.clone()), stripped(with_b));
        prop_assert_eq!(stripped(with_a), stripped(request));
    }

    #[test]
    fn a_key_put_in_again_changes_nothing((carrier, request) in carried(), a in key(), b in key()) {
        let once = request.with(&carrier, &a).unwrap();
        prop_assert_eq!(once.with(&carrier, &b).unwrap().with(&carrier, &a).unwrap(), once);
    }

    #[test]
    fn nothing_is_left_to_read_after_it_was_taken_out((carrier, request) in carried(), key in key()) {
        let stripped = request.with(&carrier, &key).unwrap().stripped(&carrier).unwrap();
        prop_assert_eq!(stripped.read(&carrier), None);
    }

    #[test]
    fn a_new_member_is_all_that_is_added(body in object(name(), value()), key in "[a-z0-9-]{4,36}") {
        let sent = Sent::new(URL, &[], &body).with(&Carrier::Json("/key".into()), &key).unwrap();
        let member = format!("\"key\":\"{key}\"");
        let (before, after) = sent.text().split_once(&member).unwrap();
        let before = if others(&body, "key").is_empty() { before } else { before.strip_suffix(',').unwrap() };
        prop_assert_eq!(format!("{before}{after}"), body);
    }

    #[test]
    fn all_other_members_stay_as_written(body in body(), key in key()) {
        let sent = Sent::new(URL, &[], &body).with(&Carrier::Json("/key".into()), &key).unwrap();
        prop_assert_eq!(others(sent.text(), "key"), others(&body, "key"));
        let stripped = sent.stripped(&Carrier::Json("/key".into())).unwrap();
        prop_assert_eq!(others(stripped.text(), "key"), others(&body, "key"));
    }

    #[test]
    fn all_members_beside_the_way_stay_as_written(body in nested_body(), key in key()) {
        let sent = Sent::new(URL, &[], &body).with(&Carrier::Json("/way/key".into()), &key).unwrap();
        prop_assert_eq!(others(sent.text(), "way"), others(&body, "way"));
    }

    #[test]
    fn no_bytes_make_a_carrier_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..64),
        (carrier, request) in carried(),
    ) {
        let mut sent = Sent { body: bytes.into(), ..request };
        let _ = sent.read(&carrier);
        let mut parts = Parts { url: &mut sent.url, headers: &mut sent.headers, body: &mut sent.body };
        let _ = carrier.inject(parts.again(), "v");
        let _ = carrier.strip(parts);
    }

    #[test]
    fn no_graphql_text_makes_a_carrier_panic(query in "(mutation|query|[{}()@$:!\"\\\\,#. a-zé\u{1F600}\n]){0,24}") {
        let body = serde_json::json!({ "query": query }).to_string();
        let request = Sent::new(URL, &[], &body);
        let carrier = Carrier::GraphqlDirective { directive: "a".into(), argument: "a".into() };
        if let Ok(sent) = request.with(&carrier, "v") {
            prop_assert_eq!(sent.read(&carrier), Some("v".to_owned()));
        }
    }
}
