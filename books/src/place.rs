//! What a path means in the provider's world: a row, a counter, a topic or an object. It must never look into that world.

use crate::carrier::first_value;
use crate::convention::{Convention, ObjectPath};

/// A place of the world, with the method that is used on it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// `/tables/{table}/rows`
    Rows(String),
    /// `/tables/{table}/rows/{id}`
    Row(String, String),
    /// `/counters/{counter}`
    Counter(String),
    /// `/counters/{counter}/increment`
    Increment(String),
    /// `/counters/{counter}/contributions/{id}`
    Contribution(String, String),
    /// `/topics/{topic}/messages`
    Messages(String),
    /// `/objects/{name}`, or any other path where the convention has objects
    Object(String),
    /// POST `/objects/{name}/append`
    Append(String),
}

impl Place {
    /// None when the path is none of the world's.
    pub fn of(convention: &Convention, method: &str, path: &str, query: &str) -> Option<Self> {
        let parts: Vec<&str> = path.split('/').skip(1).collect();
        let own = str::to_owned;
        match parts[..] {
            ["tables", table, "rows"] => Some(Self::Rows(own(table))),
            ["tables", table, "rows", id] => Some(Self::Row(own(table), own(id))),
            ["counters", counter] => Some(Self::Counter(own(counter))),
            ["counters", counter, "increment"] => Some(Self::Increment(own(counter))),
            ["counters", counter, "contributions", id] => Some(Self::Contribution(own(counter), own(id))),
            ["topics", topic, "messages"] => Some(Self::Messages(own(topic))),
            ["objects", ref name @ .., "append"] if !name.is_empty() && method == "POST" => {
                Some(Self::Append(decode(&name.join("/"))))
            }
            ["objects", ref name @ ..] if !name.is_empty() => Some(Self::Object(decode(&name.join("/")))),
            _ => convention.object_path.as_ref().map(|known| Self::Object(object(known, path, query))),
        }
    }

    /// The object whose creation others may be working on, where the convention has objects.
    pub fn object(self) -> Option<String> {
        match self {
            Self::Object(name) | Self::Append(name) => Some(name),
            _ => None,
        }
    }
}

/// An upload and a download of one object may go over different paths: both lead to one name.
fn object(known: &ObjectPath, path: &str, query: &str) -> String {
    let Some(parameter) = &known.name_query else {
        return decode(path);
    };
    let path = ["/upload", "/download"]
        .iter()
        .find_map(|before| path.strip_prefix(before).filter(|rest| rest.starts_with('/')))
        .unwrap_or(path);
    match first_value(query.as_bytes(), parameter) {
        Some(name) => format!("{}/{name}", decode(path)),
        None => decode(path),
    }
}

/// Decodes `%2F` and the like; what is no such code stays as it is.
fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let code = || u8::from_str_radix(std::str::from_utf8(after.get(..2)?).ok()?, 16).ok();
        match (*first == b'%').then(code).flatten() {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upload_and_a_download_lead_to_one_object() {
        let gcs = Convention::gcs();
        let place = |method, path, query| Place::of(&gcs, method, path, query);
        let one = Some(Place::Object("/storage/v1/b/bucket/o/a/b.txt".into()));
        assert_eq!(place("POST", "/upload/storage/v1/b/bucket/o", "uploadType=media&name=a%2Fb.txt"), one);
        assert_eq!(place("GET", "/storage/v1/b/bucket/o/a%2Fb.txt", "alt=media"), one);
        assert_eq!(place("GET", "/download/storage/v1/b/bucket/o/a%2fb.txt", ""), one);
    }

    #[test]
    fn only_the_worlds_paths_are_places() {
        let plain = Convention::default();
        let place = |method, path| Place::of(&plain, method, path, "");
        assert_eq!(place("POST", "/objects/a/b/append"), Some(Place::Append("a/b".into())));
        assert_eq!(place("PUT", "/objects/a/b/append"), Some(Place::Object("a/b/append".into())));
        for path in ["/v1/charges", "/tables/t", "/objects", "/counters", "/topics/t"] {
            assert_eq!(place("POST", path), None, "{path}");
        }
        assert_eq!(decode("%41%zz%4"), "A%zz%4");
    }
}
