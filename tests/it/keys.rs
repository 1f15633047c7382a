//! The keys: they are what the vectors say, which were computed outside this code, and they hold what is promised of any
//! input. The same vectors bind the SDKs.

use deedbox::key::{self, EffectId, HexDigits, Identity, InvalidName, Key, MAX_NAME_BYTES, ProviderAccount, Rendering};
use proptest::prelude::*;
use serde_json::Value;
use uuid::Uuid;

const VECTORS: &str = include_str!("../../guest-sdk/key-vectors.json");

#[test]
fn run_keys_are_those_of_the_vectors() {
    for case in cases("run_keys") {
        let key = key::run_key(text(&case, "tenant"), uuid(&case));
        assert_eq!((whole(&key), key.text()), shown(&case), "{case}");
    }
}

/// R-A09, R-Z11: a UUID that keeps to the grammar of keys, whatever the name.
#[test]
fn subkeys_are_those_of_the_vectors() {
    for case in cases("subkeys") {
        let run_key = key::run_key(text(&case, "tenant"), uuid(&case));
        let key = key::subkey(&run_key, text(&case, "name")).unwrap();
        assert_eq!((whole(&key), key.text()), shown(&case), "{case}");
    }
    let run_key = key::run_key("test", Uuid::nil());
    for length in vectors()["refused_names"].as_array().unwrap() {
        let length = usize::try_from(length.as_u64().unwrap()).unwrap();
        assert_eq!(key::subkey(&run_key, &"a".repeat(length)), Err(InvalidName(length)));
    }
}

/// R-L06, R-Z07: both kinds of identity, each with its own.
#[test]
fn effect_ids_are_those_of_the_vectors() {
    let mut kinds = std::collections::BTreeSet::new();
    for case in cases("effect_ids") {
        let at = |name| text(&case, name);
        let slot = || format!("{} {}{}", at("method"), at("origin"), at("path"));
        let (slot, ordinal) = if at("keying") == "positional" { (slot(), ordinal(&case)) } else { (String::new(), 0) };
        let identity = match at("keying") {
            "business" => Identity::Business { operation: at("operation"), key: at("key") },
            "named" => Identity::Named { run_id: uuid(&case), activity: at("activity"), name: at("name") },
            _ => Identity::Positional { run_id: uuid(&case), activity: at("activity"), slot: &slot, ordinal },
        };
        let provider = ProviderAccount { profile: at("profile"), account: at("account") };
        let id = key::effect_id(at("tenant"), provider, identity);
        assert_eq!(id.to_string(), at("effect_id"), "{case}");
        assert_eq!(at("effect_id").parse::<EffectId>().unwrap(), id);
        kinds.insert(at("keying").to_owned());
    }
    assert_eq!(kinds.len(), 3, "the vectors miss a way of keying");
}

#[test]
fn wire_keys_are_those_of_the_vectors_in_every_rendering() {
    for case in cases("wire_keys") {
        let key = key::wire_key(&text(&case, "effect_id").parse().unwrap());
        assert_eq!(key.text(), text(&case, "uuid"));
        assert_eq!(key.render(Rendering::Uuid), text(&case, "uuid"));
        assert_eq!(key.render(Rendering::Hex), text(&case, "hex"));
        assert_eq!(key.render(Rendering::Base32Hex), text(&case, "base32hex"));
        let truncated = case["truncated_hex"].as_object().unwrap();
        assert!(!truncated.is_empty());
        for (digits, expected) in truncated {
            assert_eq!(key.render(truncated_to(digits.parse().unwrap())), expected.as_str().unwrap());
        }
    }
}

#[test]
fn random_seeds_are_those_of_the_vectors() {
    for case in cases("random_seeds") {
        let secret = text(&case, "secret").parse::<EffectId>().unwrap().0;
        let seed = key::random_seed(&secret, text(&case, "tenant"), uuid(&case));
        assert_eq!(EffectId(seed).to_string(), text(&case, "seed"), "{case}");
    }
}

/// F-B04, R-D16, R-D17, R-D18, R-E13, R-L03, R-Z04. There is no way to hand an attempt, a worker or a time to a derivation: these are all the arguments there are.
#[test]
fn no_key_can_contain_an_attempt_number() {
    let _: fn(&str, Uuid) -> Key = key::run_key;
    let _: fn(&Key, &str) -> Result<Key, InvalidName> = key::subkey;
    let _: fn(&EffectId) -> Key = key::wire_key;
    let _: fn(&[u8; 32], &str, Uuid) -> [u8; 32] = key::random_seed;
    let _: for<'a, 'b, 'c> fn(&'a str, ProviderAccount<'b>, Identity<'c>) -> EffectId = key::effect_id;
    let run_id = Uuid::nil();
    for identity in [
        Identity::Business { operation: "o", key: "k" },
        Identity::Named { run_id, activity: "a", name: "n" },
        Identity::Positional { run_id, activity: "a", slot: "POST https://pay.example/", ordinal: 0 },
    ] {
        // Every field is named, so that a new one stops the build here.
        match identity {
            Identity::Business { operation: _, key: _ } => {}
            Identity::Named { run_id: _, activity: _, name: _ } => {}
            Identity::Positional { run_id: _, activity: _, slot: _, ordinal: _ } => {}
        }
    }
}

#[test]
fn a_truncated_key_keeps_at_least_96_bits() {
    for digits in 0..=300 {
        assert_eq!(HexDigits::new(digits).is_some(), (24..=64).contains(&digits), "{digits}");
    }
    assert_eq!(HexDigits::new(256 + 24), None, "a count must not be cut to eight bits");
}

/// R-A10.
#[test]
fn a_subkey_name_has_1_to_256_bytes() {
    let run_key = key::run_key("test", Uuid::nil());
    for letter in ["a", "é", "付", "💶"] {
        for count in 0..=MAX_NAME_BYTES + 1 {
            let name = letter.repeat(count);
            let allowed = (1..=256).contains(&name.len());
            assert_eq!(key::subkey(&run_key, &name).is_ok(), allowed, "{} bytes", name.len());
            assert_eq!(key::check_name(&name).is_ok(), allowed);
        }
    }
}

#[test]
fn only_64_lower_case_digits_are_an_effect_id() {
    let good = "0123456789abcdef".repeat(4);
    assert_eq!(good.parse::<EffectId>().unwrap().to_string(), good);
    for bad in ["".to_owned(), good[..63].to_owned(), good[..62].to_owned(), good.to_uppercase(), format!("{good}00")] {
        assert!(bad.parse::<EffectId>().is_err(), "{bad}");
    }
}

proptest! {
    #[test]
    fn the_same_input_gives_the_same_key(effect in effect(), tenant in field(), secret: [u8; 32]) {
        let run_key = key::run_key(&tenant, effect.run_id());
        prop_assert_eq!(effect.id(), effect.clone().id());
        prop_assert_eq!(key::wire_key(&effect.id()), key::wire_key(&effect.clone().id()));
        prop_assert_eq!(run_key, key::run_key(&tenant, effect.run_id()));
        prop_assert_eq!(key::random_seed(&secret, &tenant, effect.run_id()), key::random_seed(&secret, &tenant, effect.run_id()));
        prop_assert_eq!(key::subkey(&run_key, "n"), key::subkey(&run_key, "n"));
    }

    #[test]
    fn different_effects_have_different_ids(a in effect(), b in effect()) {
        prop_assert_eq!(a == b, a.id() == b.id());
        prop_assert_eq!(a == b, key::wire_key(&a.id()) == key::wire_key(&b.id()));
    }

    /// The same bytes in the same order, cut into fields at other places.
    #[test]
    fn a_byte_moved_to_the_next_field_changes_the_id(effect in effect(), from in 0..6usize) {
        let moved = effect.with_a_letter_moved(from);
        prop_assert_eq!(moved == effect, moved.id() == effect.id());
    }

    #[test]
    fn run_keys_and_subkeys_and_seeds_tell_their_fields_apart(
        one in (field(), run_id(), name()), other in (field(), run_id(), name()), secrets: [[u8; 32]; 2],
    ) {
        let key_of = |(tenant, run, _): &(String, Uuid, String)| key::run_key(tenant, *run);
        let same_run = (&one.0, one.1) == (&other.0, other.1);
        prop_assert_eq!(same_run, key_of(&one) == key_of(&other));
        let (a, b) = (key::subkey(&key_of(&one), &one.2), key::subkey(&key_of(&other), &other.2));
        prop_assert_eq!(one == other, a.unwrap() == b.unwrap());
        let [a, b] = [(secrets[0], &one), (secrets[1], &other)].map(|(s, it)| key::random_seed(&s, &it.0, it.1));
        prop_assert_eq!(same_run && secrets[0] == secrets[1], a == b);
    }

    /// What is handed to one reader never equals what is handed to another.
    /// R-D41.
    #[test]
    fn kinds_of_keys_never_meet(tenant in field(), run in run_id(), name in name()) {
        let run_key = key::run_key(&tenant, run);
        let subkey = key::subkey(&run_key, &name).unwrap();
        let provider = ProviderAccount { profile: &tenant, account: &name };
        let id = key::effect_id(&tenant, provider, Identity::Business { operation: &name, key: &name });
        let named = key::effect_id(&tenant, provider, Identity::Named { run_id: run, activity: &name, name: &name });
        let seed = key::random_seed(&id.0, &tenant, run);
        let mut all = vec![whole(&run_key), whole(&subkey), id.to_string(), named.to_string()];
        all.extend([whole(&key::wire_key(&id)), EffectId(seed).to_string()]);
        let count = all.len();
        all.sort();
        all.dedup();
        prop_assert_eq!(all.len(), count);
    }

    #[test]
    fn every_rendering_keeps_to_its_alphabet_and_length(id: [u8; 32], digits in 24..=64usize) {
        let key = key::wire_key(&EffectId(id));
        let drawn_from = |text: &str, alphabet: &str| text.chars().all(|c| alphabet.contains(c));
        let (hex, base32) = (key.render(Rendering::Hex), key.render(Rendering::Base32Hex));
        prop_assert!(hex.len() == 32 && drawn_from(&hex, "0123456789abcdef"));
        prop_assert!(base32.len() == 26 && drawn_from(&base32, "0123456789abcdefghijklmnopqrstuv"));
        let truncated = key.render(truncated_to(digits));
        prop_assert!(truncated.len() == digits && truncated.len() * 4 >= 96);
        prop_assert!(drawn_from(&truncated, "0123456789abcdef"));
        prop_assert!(whole(&key).starts_with(&truncated) && whole(&key).starts_with(&hex));
    }

    /// R-A08.
    #[test]
    fn the_text_form_is_a_version_8_uuid_and_a_request_key(tenant in field(), run in run_id(), name in name()) {
        let run_key = key::run_key(&tenant, run);
        for key in [run_key, key::subkey(&run_key, &name).unwrap()] {
            let text = key.text();
            let parsed = Uuid::parse_str(&text).unwrap();
            prop_assert_eq!(parsed.get_version_num(), 8);
            prop_assert_eq!(parsed.get_variant(), uuid::Variant::RFC4122);
            prop_assert_eq!(parsed.hyphenated().to_string(), text.as_str(), "lower case, hyphenated");
            prop_assert!((22..=128).contains(&text.len()), "the request-key grammar's length");
            prop_assert!(text.bytes().all(|c| c.is_ascii_alphanumeric() || b"._~-".contains(&c)), "and its alphabet");
        }
    }
}

/// An effect whose fields are its own: the texts in the order in which they are hashed.
#[derive(Clone, Debug, PartialEq)]
enum Effect {
    Business([String; 5]),
    Named(Uuid, [String; 5]),
    Positional(Uuid, [String; 5], u32),
}

impl Effect {
    fn id(&self) -> EffectId {
        match self {
            Self::Business([tenant, profile, account, operation, key]) => {
                key::effect_id(tenant, ProviderAccount { profile, account }, Identity::Business { operation, key })
            }
            Self::Named(run_id, [tenant, activity, profile, account, name]) => {
                let identity = Identity::Named { run_id: *run_id, activity, name };
                key::effect_id(tenant, ProviderAccount { profile, account }, identity)
            }
            Self::Positional(run_id, [tenant, activity, profile, account, slot], ordinal) => {
                let identity = Identity::Positional { run_id: *run_id, activity, slot, ordinal: *ordinal };
                key::effect_id(tenant, ProviderAccount { profile, account }, identity)
            }
        }
    }

    fn run_id(&self) -> Uuid {
        match self {
            Self::Business(_) => Uuid::nil(),
            Self::Named(run_id, _) | Self::Positional(run_id, ..) => *run_id,
        }
    }

    /// The last letter of one text goes to the front of the next.
    fn with_a_letter_moved(&self, from: usize) -> Self {
        let mut moved = self.clone();
        let (Self::Business(texts) | Self::Named(_, texts) | Self::Positional(_, texts, _)) = &mut moved;
        let from = from % (texts.len() - 1);
        if let Some(letter) = texts[from].pop() {
            texts[from + 1].insert(0, letter);
        }
        moved
    }
}

fn effect() -> impl Strategy<Value = Effect> {
    let texts = || proptest::array::uniform5(field());
    prop_oneof![
        texts().prop_map(Effect::Business),
        (run_id(), texts()).prop_map(|(run, texts)| Effect::Named(run, texts)),
        (run_id(), texts(), prop_oneof![0..3u32, any::<u32>()])
            .prop_map(|(run, texts, ordinal)| Effect::Positional(run, texts, ordinal)),
    ]
}

/// Few letters and short texts, so that near misses are common; now and then anything.
fn field() -> impl Strategy<Value = String> {
    prop_oneof![4 => "[ab\\x00\\x01]{0,3}", 1 => any::<String>()]
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof!["[ab\\x00]{1,3}", "\\PC{1,64}"]
}

fn run_id() -> impl Strategy<Value = Uuid> {
    prop_oneof![(0..3u128).prop_map(Uuid::from_u128), any::<u128>().prop_map(Uuid::from_u128)]
}

fn truncated_to(digits: usize) -> Rendering {
    Rendering::TruncatedHex(HexDigits::new(digits).unwrap())
}

/// All 256 bits of a key.
fn whole(key: &Key) -> String {
    key.render(truncated_to(64))
}

fn vectors() -> Value {
    serde_json::from_str(VECTORS).unwrap()
}

fn cases(kind: &str) -> Vec<Value> {
    let cases = vectors()[kind].as_array().unwrap().clone();
    assert!(cases.len() >= 4, "{kind}: too few vectors to check anything");
    cases
}

fn text<'a>(case: &'a Value, name: &str) -> &'a str {
    case[name].as_str().unwrap_or_else(|| panic!("no text `{name}` in {case}"))
}

fn uuid(case: &Value) -> Uuid {
    text(case, "run_id").parse().unwrap()
}

fn ordinal(case: &Value) -> u32 {
    u32::try_from(case["ordinal"].as_u64().unwrap()).unwrap()
}

fn shown(case: &Value) -> (String, String) {
    (text(case, "hash").to_owned(), text(case, "text").to_owned())
}
