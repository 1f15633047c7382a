//! What no file of the repository may say: where packages come from on the network, and where it once lay on a disk.

use super::source::Breach;

/// Put together here, so that this file does not say them either.
const HOSTS: [&str; 9] = [
    concat!("crates", ".io"),
    concat!("pypi", ".org"),
    concat!("files.python", "hosted.org"),
    concat!("npmjs", ".org"),
    concat!("npmjs", ".com"),
    concat!("deb.", "debian.org"),
    concat!("proxy.", "golang.org"),
    concat!("repo.maven", ".apache.org"),
    concat!("static.rust-", "lang.org"),
];

const PLACES: [&str; 3] = [concat!("/wo", "rk"), concat!("/ro", "ot"), concat!("/tmp", "/w")];

/// Written by a tool, which names its source of packages.
const LOCK_FILES: [&str; 1] = ["Cargo.lock"];

pub fn breaches(path: &str, text: &str) -> Vec<Breach> {
    if LOCK_FILES.contains(&path) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        let host = HOSTS.iter().find(|host| line.contains(*host));
        if let Some(said) = host.or_else(|| PLACES.iter().find(|place| names_place(line, place))) {
            found.push(Breach(format!("{path}:{number}: no file may name `{said}`")));
        }
    }
    found
}

/// An absolute path that begins there, not a part of another path.
fn names_place(line: &str, place: &str) -> bool {
    line.match_indices(place).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + place.len()..].chars().next();
        let begins = before.is_none_or(|c| c.is_whitespace() || "\"'=`(<[,".contains(c));
        begins && after.is_none_or(|c| !c.is_alphanumeric() && !"-_.:".contains(c))
    })
}
