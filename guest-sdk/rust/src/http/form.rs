//! The body of an HTML form, `application/x-www-form-urlencoded`. The same pairs always give the same
//! bytes, for the body is part of what the ledger compares.

/// `a=1&b=x+y`, in the order given.
pub fn encode<K: AsRef<str>, V: AsRef<str>>(pairs: &[(K, V)]) -> String {
    let mut text = String::new();
    for (name, value) in pairs {
        if !text.is_empty() {
            text.push('&');
        }
        push(&mut text, name.as_ref());
        text.push('=');
        push(&mut text, value.as_ref());
    }
    text
}

fn push(text: &mut String, part: &str) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for byte in part.bytes() {
        match byte {
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'*' | b'-' | b'.' | b'_' => text.push(byte.into()),
            b' ' => text.push('+'),
            _ => {
                text.push('%');
                text.push(DIGITS[usize::from(byte >> 4)].into());
                text.push(DIGITS[usize::from(byte & 15)].into());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::encode;

    #[test]
    fn a_form_keeps_its_order_and_escapes_what_it_must() {
        let pairs = [("b", "x y&z"), ("ä", "100%"), ("empty", "")];
        assert_eq!(encode(&pairs), "b=x+y%26z&%C3%A4=100%25&empty=");
    }
}
