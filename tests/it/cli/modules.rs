//! Modules on the command line: who brought them, what is to be signed of them, and signatures that were made elsewhere.

use data_encoding::{BASE64, HEXLOWER};
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::json;

use super::program::{Up, component_file, deedbox, finish, place};

#[tokio::test(flavor = "multi_thread")]
async fn a_module_is_signed_elsewhere_and_deployed_where_signatures_are_needed() {
    let place = place();
    let up = Up::start(&place.path().join("d")).await;
    let admin = |arguments: &[&str]| {
        let mut command = deedbox(arguments);
        command.env("DEEDBOX_URL", &up.address).env("DEEDBOX_TOKEN", &up.admin_token);
        finish(command)
    };
    let component = component_file(place.path(), "charge_once.wasm");
    let write = |name: &str, bytes: &[u8]| {
        let path = place.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let pair = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap();
    let spki = [&HEXLOWER.decode(b"302a300506032b6570032100").unwrap(), pair.public_key().as_ref()].concat();
    let pem = format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n", BASE64.encode(&spki));
    let public = write("release.pub", pem.as_bytes());
    let signer = ["tenant", "signer", "add", "default", "release", public.as_str()];
    admin(&signer).await.well();
    assert!(admin(&["tenant", "signer", "list", "default"]).await.well().contains("release"));
    let limits = ["tenant", "limits", "default", "--require-signature", "true"];
    assert!(admin(&limits).await.well().contains("signatures needed"));

    // Neither needs a server.
    let digest = finish(deedbox(&["module", "digest", &component])).await.well();
    let message = finish(deedbox(&["module", "digest", &component, "--message"])).await.well();
    assert_eq!(message, format!("deedbox module v1\n{digest}"));
    let signature = pair.sign(message.as_bytes());
    let raw = write("module.sig", signature.as_ref());
    let text = write("module.sig.txt", format!("{}\n", BASE64.encode(signature.as_ref())).as_bytes());
    let wrong = write("wrong.sig", pair.sign(digest.as_bytes()).as_ref());

    let refused = up.run(&["deploy", &component]).await.failed(1);
    assert!(refused.contains("require_signature"), "{refused}");
    let refused = up.run(&["deploy", &component, "--signature", &wrong]).await.failed(1);
    assert!(refused.contains("release") && refused.contains("--message"), "{refused}");
    up.run(&["deploy", &component, "--signature", &component]).await.failed(2);
    let deployed = up.ask(&["deploy", &component, "--signature", &raw, "--as-version", "1"]).await;
    assert_eq!(deployed["activities"][0]["signed_by"]["signer"], "release");
    let again = up.ask(&["deploy", &component, "--as-version", "1"]).await;
    assert_eq!(again["activities"], deployed["activities"]);
    assert!(up.run(&["deploy", &component, "--as-version", "7"]).await.failed(1).contains("version: "));

    let digest = digest.trim();
    assert_eq!(up.ask(&["module"]).await["items"][0]["digest"], digest);
    let shown = up.run(&["module", "show", digest]).await.well();
    assert!(shown.contains("deedbox up") && shown.contains("release") && shown.contains("charge-once"), "{shown}");
    let versions = up.run(&["activity", "show", "charge-once"]).await.well();
    assert!(versions.contains("deedbox up") && versions.contains("release"), "{versions}");
    let signed = up.ask(&["module", "sign", digest, "--signature", &text]).await;
    assert_eq!(signed["signatures"].as_array().unwrap().len(), 1);
    assert!(up.run(&["module", "rm", digest]).await.failed(1).contains("version"));

    let other = component_file(place.path(), "deedbox_test_guests.wasm");
    let uploaded = up.ask(&["module", "upload", &other]).await;
    assert_eq!(uploaded["signatures"], json!([]));
    up.run(&["module", "rm", uploaded["digest"].as_str().unwrap()]).await.well();
    admin(&["tenant", "signer", "rm", "default", "release"]).await.well();
    assert!(up.run(&["module", "show", digest]).await.well().contains("its key was removed"));
    up.stop("TERM").await;
}
