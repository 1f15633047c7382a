//! Where a name may stand: each outside technology has one home, and so have the environment and `unsafe`. The
//! exceptions are in one table, each with its reason, and one that nobody needs is a breach as well.

use super::source::{Breach, Source};

/// Names that may stand only under some folders or files. Where none is given, only where an exception says so.
struct Rule {
    /// What the exceptions call it.
    what: &'static str,
    /// Paths of names, in the way they are written: `a::b`.
    names: &'static [&'static str],
    /// Where it is looked for.
    scope: &'static str,
    homes: &'static [&'static str],
}

const RUNTIME: &str = "runtime/src/";

const RULES: [Rule; 11] = [
    Rule { what: "the database", names: &["sqlx"], scope: RUNTIME, homes: &["runtime/src/store/"] },
    Rule {
        what: "the engine",
        names: &["wasmtime", "wasmtime_wasi", "wasmtime_wasi_http"],
        scope: RUNTIME,
        homes: &["runtime/src/host/", "runtime/src/registry/"],
    },
    Rule { what: "the web framework", names: &["axum", "StatusCode"], scope: RUNTIME, homes: &["runtime/src/api/"] },
    Rule {
        what: "the way out",
        names: &[
            "hyper",
            "hyper_util",
            "rustls",
            "tokio_rustls",
            "rustls_native_certs",
            "TcpStream",
            "TcpSocket",
            "UdpSocket",
            "UnixStream",
            "lookup_host",
            "hickory_resolver",
            "reqwest",
            "async_nats",
        ],
        scope: RUNTIME,
        homes: &["runtime/src/gateway/"],
    },
    Rule { what: "listening", names: &["TcpListener", "UnixListener"], scope: RUNTIME, homes: &["runtime/src/api/"] },
    Rule {
        what: "a confined folder",
        names: &["cap_std"],
        scope: RUNTIME,
        homes: &["runtime/src/registry/", "runtime/src/gateway/files/"],
    },
    Rule { what: "an open file system", names: &["std::fs", "tokio::fs"], scope: "runtime/src/registry/", homes: &[] },
    // Guests choose the paths there.
    Rule {
        what: "an open file system",
        names: &["std::fs", "tokio::fs"],
        scope: "runtime/src/gateway/files/",
        homes: &[],
    },
    Rule { what: "unsafe", names: &["unsafe"], scope: "", homes: &[] },
    Rule {
        what: "the environment",
        names: &["env::var", "env::var_os", "env::vars", "env::vars_os", "env::set_var", "env::remove_var"],
        scope: "",
        homes: &[
            "runtime/src/main.rs",
            "runtime/src/config.rs",
            "runtime/src/cli/settings.rs",
            "xtask/src/settings.rs",
        ],
    },
    Rule {
        what: "an argument from the environment",
        names: &["env="],
        scope: "",
        homes: &["runtime/src/main.rs", "runtime/src/cli/", "xtask/src/settings.rs"],
    },
];

/// What, where, why.
pub const EXCEPTIONS: [(&str, &str, &str); 19] = [
    ("the way out", "runtime/src/api/server.rs", "serves the connections that it took, by the same library"),
    ("the way out", "runtime/src/api/tls.rs", "the certificate under which it is served"),
    ("the way out", "runtime/src/cli/trust.rs", "whom the commands believe when they call the API over TLS"),
    ("the way out", "runtime/src/cli/client.rs", "a command calls the API at the address that its user gives"),
    ("the way out", "runtime/src/cli/demo/books.rs", "the demonstration reads the provider's books, on this machine"),
    ("the web framework", "runtime/src/cli/demo/books.rs", "the status of an answer of those books"),
    ("listening", "runtime/src/cli/up.rs", "takes the port before anything else is started"),
    ("listening", "runtime/src/cli/settings.rs", "takes the port that the settings name"),
    ("listening", "runtime/src/cli/client.rs", "its tests stand in for an API"),
    ("listening", "runtime/src/verify/providers.rs", "simulated providers, on this machine, for a closed world"),
    ("listening", "runtime/src/node.rs", "is handed the port on which it serves the API"),
    ("the way out", "runtime/src/host/sockets.rs", "names the interfaces that it denies"),
    ("unsafe", "runtime/src/registry/artefact.rs", "loads compiled code that this host wrote and authenticated"),
    ("the environment", "runtime/src/postgres/tests.rs", "a test looks for a server's programs"),
    ("the environment", "runtime/build.rs", "cargo tells a build script where to write"),
    ("the environment", "runtime/benches/common/mod.rs", "a benchmark is told where its database is"),
    ("the environment", "tests/it/harness/mod.rs", "the one place of the tests that reads it"),
    ("the environment", "tests/guests/src/wasi.rs", "a guest shows that it sees none"),
    ("the environment", "tests/guests-wasi-http/src/surroundings.rs", "a guest shows that it sees none"),
];

/// The breaches of one file, and the exceptions that it needs.
pub fn breaches(source: &Source) -> (Vec<Breach>, Vec<usize>) {
    let (mut found, mut needed) = (Vec::new(), Vec::new());
    for rule in RULES.iter().filter(|rule| source.is_under(rule.scope)) {
        let at_home = rule.homes.iter().any(|home| source.is_under(home));
        let lines = if at_home { Vec::new() } else { lines_of(source, rule) };
        let excepted = EXCEPTIONS.iter().position(|(what, path, _)| (*what, *path) == (rule.what, &source.path));
        match excepted {
            Some(exception) if !lines.is_empty() => needed.push(exception),
            Some(_) => {}
            None => found.extend(lines.into_iter().map(|(line, name)| {
                source.breach(line, &format!("`{name}` names {}, which has another home", rule.what))
            })),
        }
    }
    (found, needed)
}

/// Whoever runs guests cannot even name what they must never hold.
pub fn secret_words(source: &Source) -> Vec<Breach> {
    if !source.is_under("runtime/src/host/") {
        return Vec::new();
    }
    let lines = source.text.lines().zip(1..);
    let names_one = |line: &str| ["secret", "vault"].iter().any(|word| line.to_lowercase().contains(word));
    let found = lines.filter(|(line, _)| names_one(line));
    found.map(|(_, number)| source.breach(number, "the host must not name a secret or the vault")).collect()
}

fn lines_of(source: &Source, rule: &Rule) -> Vec<(usize, &'static str)> {
    let mut lines = Vec::new();
    for name in rule.names {
        let (first, rest) = name.split_once("::").map_or((*name, None), |(first, rest)| (first, Some(rest)));
        for (at, token) in source.tokens.iter().enumerate().filter(|(_, token)| token.is_ident) {
            let here = match rest {
                Some(rest) => token.text == first && source.follows(at, &[":", ":", rest]),
                // The attribute by which a program's argument may come from the environment.
                None if *name == "env=" => token.text == "env" && source.follows(at, &["=", "\"\""]),
                None => token.text == *name,
            };
            if here {
                lines.push((token.line, *name));
            }
        }
    }
    lines
}
