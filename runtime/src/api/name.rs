//! The grammars of names and ids. What breaks a name's grammar is told so; an id that cannot be one names nothing.

use uuid::Uuid;

use super::error::{Problem, Result};

const LONGEST_NAME: usize = 128;
const LONGEST_TENANT: usize = 63;

/// Checks the name of an activity, a secret, a provider or an account: 1 to 128 of `A-Z a-z 0-9 . _ -`. `field` says
/// where it stood.
pub fn check(field: &str, name: &str) -> Result<()> {
    let known = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'_' | b'-');
    if (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(known) {
        return Ok(());
    }
    Err(Problem::validation(format!("{field}: must be 1 to {LONGEST_NAME} characters of A-Z a-z 0-9 . _ -")))
}

/// Checks the name of a tenant: 1 to 63 of `a-z 0-9 -`, not beginning with `-`.
pub fn check_tenant(field: &str, name: &str) -> Result<()> {
    if is_tenant(name) {
        return Ok(());
    }
    let rule = format!("must be 1 to {LONGEST_TENANT} characters of a-z 0-9 -, the first one no -");
    Err(Problem::validation(format!("{field}: {rule}")))
}

pub fn is_tenant(name: &str) -> bool {
    let known = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
    (1..=LONGEST_TENANT).contains(&name.len()) && name.bytes().all(known) && !name.starts_with('-')
}

/// Checks a free text for people: at most 128 characters, none of them a control character.
pub fn check_label(field: &str, text: &str) -> Result<()> {
    if text.chars().count() <= LONGEST_NAME && !text.chars().any(char::is_control) {
        return Ok(());
    }
    Err(Problem::validation(format!("{field}: must be at most {LONGEST_NAME} characters without control characters")))
}

/// A UUID in its one spelling, lower-case and hyphenated.
pub fn uuid(text: &str) -> Option<Uuid> {
    Uuid::try_parse(text).ok().filter(|id| id.to_string() == text)
}

/// 32 bytes as 64 lower-case hexadecimal digits.
pub fn hash(text: &str) -> Option<[u8; 32]> {
    data_encoding::HEXLOWER.decode(text.as_bytes()).ok()?.try_into().ok()
}

/// The text of a digest or an effect id.
pub fn hex(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_one_grammar() {
        for good in ["a", "Charge_order-2.v1", &"x".repeat(128)] {
            assert!(check("name", good).is_ok(), "{good}");
        }
        for bad in ["", "a b", "a/b", "ä", "a\0", "a~", &"x".repeat(129)] {
            assert!(check("name", bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn tenants_are_named_as_the_schema_names_them() {
        for good in ["a", "0", "a-", "acme-2", &"x".repeat(63)] {
            assert!(is_tenant(good), "{good}");
        }
        for bad in ["", "-a", "A", "_admin", "a.b", "a_b", "a\n", &"x".repeat(64)] {
            assert!(!is_tenant(bad), "{bad}");
            assert!(check_tenant("tenant", bad).is_err());
        }
    }

    #[test]
    fn ids_have_one_spelling() {
        let id = Uuid::now_v7();
        assert_eq!(uuid(&id.to_string()), Some(id));
        for other in [id.simple().to_string(), id.urn().to_string(), format!("{id:X}"), String::new()] {
            assert_eq!(uuid(&other), None, "{other}");
        }
        let text = hex(&[0xab; 32]);
        assert_eq!(hash(&text), Some([0xab; 32]));
        for other in [text.to_uppercase(), text[2..].to_owned(), format!("{text}00"), "zz".repeat(32)] {
            assert_eq!(hash(&other), None, "{other}");
        }
    }

    #[test]
    fn labels_are_short_and_printable() {
        assert!(check_label("label", "").is_ok() && check_label("label", &"ä".repeat(128)).is_ok());
        assert!(check_label("label", "a\nb").is_err() && check_label("label", &"a".repeat(129)).is_err());
    }
}
