//! Paths as guests write them: `exports/2026/orders.csv`. One that could mean anything but a file below the granted
//! directory is refused here; that nothing else is reached all the same is the confined directory's part.

use std::fmt;

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

const MAX_PATH_BYTES: usize = 1024;
const MAX_SEGMENT_BYTES: usize = 255;

/// What a name in a URL cannot have as it is.
const NAME: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'/')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'\\')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// What stands in the name of every temporary file.
pub const MARK: &str = ".deedbox-";

/// A checked path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePath {
    /// The granted directory's name.
    pub grant: String,
    /// The directories below it.
    pub parents: Vec<String>,
    pub file: String,
}

impl FilePath {
    /// The error says what is wrong with the path.
    pub fn parse(text: &str) -> Result<Self, String> {
        let shown = text.escape_debug().to_string();
        if text.len() > MAX_PATH_BYTES {
            return Err(format!("a path has at most {MAX_PATH_BYTES} bytes; this one has {}", text.len()));
        }
        let mut segments: Vec<String> = text.split('/').map(str::to_owned).collect();
        for segment in &segments {
            check_segment(segment).map_err(|why| format!("the path `{shown}`: {why}"))?;
        }
        let (Some(file), false) = (segments.pop(), segments.is_empty()) else {
            return Err(format!(
                "the path `{shown}` must name a granted directory and a file, as in exports/orders.csv"
            ));
        };
        if file.starts_with('.') && file.contains(MARK) {
            return Err(format!("the path `{shown}`: such a name belongs to the host's temporary files"));
        }
        let parents = segments.split_off(1);
        Ok(Self { grant: segments.remove(0), parents, file })
    }

    /// As the ledger shows it.
    pub fn url(&self) -> String {
        let names = [&self.grant].into_iter().chain(&self.parents).chain([&self.file]);
        // Not by a library for URLs: to those a first name of a letter and a bar is a drive, and is written otherwise.
        let encoded = names.map(|name| utf8_percent_encode(name, NAME).to_string());
        format!("file:///{}", encoded.collect::<Vec<_>>().join("/"))
    }
}

impl fmt::Display for FilePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/", self.grant)?;
        self.parents.iter().try_for_each(|parent| write!(f, "{parent}/"))?;
        f.write_str(&self.file)
    }
}

fn check_segment(segment: &str) -> Result<(), String> {
    match segment {
        "" => Err("it must not begin or end with a slash, nor have two in a row".to_owned()),
        "." | ".." => Err(format!("`{segment}` is not allowed in it")),
        _ if segment.len() > MAX_SEGMENT_BYTES => Err(format!("a name in it has more than {MAX_SEGMENT_BYTES} bytes")),
        _ if segment.chars().any(|c| c.is_control() || c == '\\') => {
            Err("backslashes and control characters are not allowed in it".to_owned())
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R-D13.
    #[test]
    fn a_path_names_a_grant_directories_and_a_file() {
        let path = FilePath::parse("exports/2026/ä b.csv").unwrap();
        assert_eq!((path.grant.as_str(), path.file.as_str()), ("exports", "ä b.csv"));
        assert_eq!(path.parents, ["2026"]);
        assert_eq!(path.to_string(), "exports/2026/ä b.csv");
        assert_eq!(path.url(), "file:///exports/2026/%C3%A4%20b.csv");
        assert_eq!(FilePath::parse("C|/a").unwrap().url(), "file:///C%7C/a");
    }

    #[test]
    fn what_could_lead_elsewhere_is_refused() {
        let long = format!("exports/{}", "x".repeat(256));
        let longer = format!("exports/{}", "x/".repeat(600));
        for path in [
            "",
            "/",
            "exports",
            "exports/",
            "/exports/a",
            "exports//a",
            "exports/./a",
            "exports/../a",
            "..",
            "a/b\\c",
            "exports/a\0b",
            "exports/a\nb",
            "exports/.a.csv.deedbox-1",
            &long,
            &longer,
        ] {
            assert!(FilePath::parse(path).is_err(), "{path:?}");
        }
    }
}
