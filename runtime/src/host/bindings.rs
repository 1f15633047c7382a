//! The host's side of the WIT world, generated.

wasmtime::component::bindgen!({
    path: "../wit",
    world: "activity",
    imports: { default: async | trappable },
    exports: { default: async },
});

/// What a component may import: the interfaces of a package, or one of them, with the versions that the host speaks.
const KNOWN: [(&str, &str); 9] = [
    ("deedbox:activity/", "@0.1."),
    ("wasi:cli/", "@0.2."),
    ("wasi:clocks/", "@0.2."),
    ("wasi:filesystem/", "@0.2."),
    ("wasi:http/outgoing-handler", "@0.2."),
    ("wasi:http/types", "@0.2."),
    ("wasi:io/", "@0.2."),
    ("wasi:random/", "@0.2."),
    ("wasi:sockets/", "@0.2."),
];

/// True when the host offers an interface of this name. Whether each of its functions is there shows at linking.
pub fn is_known(import: &str) -> bool {
    KNOWN.iter().any(|(package, version)| import.starts_with(package) && import[package.len()..].contains(version))
}

/// The known interfaces in words, for people whose import is none of them.
pub fn known_in_words() -> String {
    let words = |(package, version): &(&str, &str)| {
        let all = if package.ends_with('/') { "*" } else { "" };
        format!("{package}{all}{version}x")
    };
    KNOWN.iter().map(words).collect::<Vec<_>>().join(", ")
}
