//! The shipped profiles can be read, and a wrong one is refused with the file, the line and the field.

use http::{HeaderMap, Method};
use url::Url;

use super::*;

fn refusal(text: &str) -> String {
    Profile::parse("mine.toml", text, None).unwrap_err().to_string()
}

const HEAD: &str = "name = \"mine\"\nversion = \"1\"\nsource = \"x\"\n";

#[test]
fn every_shipped_profile_can_be_read() {
    let all = Profiles::load(None).unwrap();
    for (file, _) in shipped::PROFILES {
        let profile = all.get(file.trim_end_matches(".toml")).unwrap();
        assert!(!profile.source.is_empty() && !profile.version.is_empty(), "{file}");
    }
    assert_eq!(all.all().count(), shipped::PROFILES.len());
}

#[test]
fn no_two_shipped_profiles_name_one_host() {
    let all = Profiles::load(None).unwrap();
    let hosts = all.all().flat_map(|profile| profile.hosts.iter().map(move |host| (host.as_str(), &profile.name)));
    let mut seen = BTreeMap::new();
    for (host, name) in hosts {
        assert_eq!(seen.insert(host, name), None, "{host}");
    }
}

#[test]
fn a_wrong_profile_is_refused_with_the_line_and_the_field() {
    for (wrong, line, said) in [
        ("colour = 1\n", "line 4", "unknown field `colour`"),
        ("digest_headers = [\"a b\"]\n", "line 4", "`a b` is not a header name"),
        ("hosts = [\"*.com\"]\n", "line 4", "is not a host pattern"),
        ("[[operation]]\npaths = [\"v1\"]\n", "line 5", "is not a path pattern"),
        (
            "[[operation]]\n[operation.key]\ncarrier = { header = \"X\" }\nrendering = { truncated-hex = 8 }\n",
            "line 7",
            "at least 24",
        ),
        ("[answers]\nin_flight = [{ pointer = \"a\" }]\n", "line 5", "is not a JSON pointer"),
    ] {
        let refusal = refusal(&format!("{HEAD}{wrong}"));
        assert!(
            refusal.contains("mine.toml") && refusal.contains(line) && refusal.contains(said),
            "{wrong}: {refusal}"
        );
    }
    let carrier = format!("{HEAD}[[operation]]\n[operation.key]\ncarrier = {{ header = \"a b\" }}\n");
    assert!(refusal(&carrier).contains("key.carrier"), "{}", refusal(&carrier));
    let chosen = format!("{HEAD}[[operation]]\n[operation.key]\ncarrier = {{ header = \"X-Key\" }}\nown = \"keep\"\n");
    assert!(refusal(&chosen).contains("key.own"), "{}", refusal(&chosen));
    assert!(refusal(&format!("{HEAD}guessed = [\"luck\"]\n")).contains("`luck`"));
}

#[test]
fn a_guessed_fact_is_read_on_the_safe_side() {
    let key = "[operation.key]\ncarrier = { header = \"X-Key\" }\nretention = \"30days\"\n";
    let lookup = "[operation.lookup]\npath = \"/o\"\nfound = { statuses = [200] }\nabsent = { statuses = [404] }\n";
    let answers = "[answers]\nnot_processed = [503]\nalready_done = [{ status = 409 }]\n";
    let facts = "guessed = [\"operation.key.retention\", \"operation.lookup\", \"answers.not_processed\", \"answers.already_done\"]\n";
    let profile = Profile::parse("m", &format!("{HEAD}{facts}{answers}[[operation]]\n{key}{lookup}"), None).unwrap();
    let operation = &profile.operations[0];
    assert_eq!(operation.key.as_ref().unwrap().window(), Some(GUESSED_RETENTION));
    assert!(operation.lookup.as_ref().unwrap().absent.is_none(), "a guessed look-up never releases");
    assert!(profile.answers.not_processed.is_empty() && profile.answers.already_done.is_empty());
    assert_eq!(profile.answers.mismatch.len(), 1, "what may prove nothing leaves the question open");
}

#[test]
fn a_profile_can_extend_another_one() {
    let all = Profiles::load(None).unwrap();
    let text = "extends = \"stripe\"\nname = \"stripe-eu\"\nhosts = [\"stripe.example.test\"]\n";
    let profile = Profile::parse("mine.toml", text, Some(&all)).unwrap();
    assert_eq!(profile.name.0, "stripe-eu");
    assert_eq!(profile.operations.len(), all.get("stripe").unwrap().operations.len());
    assert!(Profile::parse("mine.toml", "extends = \"nobody\"\n", Some(&all)).is_err());
}

/// R-E06, R-D11: a read is no effect, whoever it is sent to; a POST that only reads is none where the profile knows it.
#[test]
fn operations_are_found_by_method_path_headers_and_body() {
    let all = Profiles::load(None).unwrap();
    let ask = |profile: &str, method: Method, url: &str, target: Option<&'static str>, body: &str| {
        let mut headers = HeaderMap::new();
        if let Some(target) = target {
            headers.insert("x-amz-target", http::HeaderValue::from_static(target));
        }
        let url = Url::parse(url).unwrap();
        let asked = Asked { method: &method, url: &url, headers: &headers, body: body.as_bytes() };
        let profile = all.get(profile).unwrap();
        profile.operation(asked).map(|(at, _)| profile.operations[at].clone())
    };
    let dynamodb = "https://dynamodb.eu-west-1.amazonaws.com/";
    let write = ask("dynamodb", Method::POST, dynamodb, Some("DynamoDB_20120810.TransactWriteItems"), "{}").unwrap();
    assert!(write.key.is_some());
    let read = ask("dynamodb", Method::POST, dynamodb, Some("DynamoDB_20120810.GetItem"), "{}").unwrap();
    assert_eq!(read.effect, Some(false));
    assert!(ask("stripe", Method::GET, "https://api.stripe.com/v1/charges", None, "").is_none());
    assert!(ask("stripe", Method::POST, "https://api.stripe.com/v1/charges", None, "").unwrap().key.is_some());
    let region = all.get("dynamodb").unwrap().region_of("dynamodb.eu-west-1.amazonaws.com");
    assert_eq!(region.as_deref(), Some("eu-west-1"));
}

/// The worked example of AWS's own documentation of Signature Version 4 (IAM, ListUsers).
#[test]
fn a_request_is_signed_as_aws_documents_it() {
    let secret = r#"{"access_key_id":"AKIDEXAMPLE","secret_access_key":"wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY","region":"us-east-1"}"#;
    let secret = crate::gateway::vault::Secret::new(secret.to_owned().into());
    let mut url = Url::parse("https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08").unwrap();
    let mut headers = HeaderMap::new();
    let form = http::HeaderValue::from_static("application/x-www-form-urlencoded; charset=utf-8");
    headers.insert(http::header::CONTENT_TYPE, form);
    let signing = Signing {
        method: &Method::GET,
        url: &mut url,
        headers: &mut headers,
        body: &bytes::Bytes::new(),
        region: None,
        now: std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(1_440_938_160),
    };
    Placement::AwsSigv4("iam".to_owned()).inject(signing, &secret).unwrap();
    assert_eq!(
        headers["authorization"],
        "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/iam/aws4_request, \
         SignedHeaders=content-type;host;x-amz-date, \
         Signature=5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"
    );
}
