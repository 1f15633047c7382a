//! How deep a JSON text is nested. A text that is kept as it came is later read by programs that go one call deeper for
//! each level, so the levels are counted before anything else reads it. It must never judge whether the text is JSON.

use super::error::{Problem, Result};

/// Refuses a text with more than `max` levels of arrays and objects, the outermost included.
pub fn check(text: &[u8], max: usize) -> Result<()> {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => depth += 1,
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > max {
            return Err(Problem::validation(format!("body: nested deeper than {max} levels, the most that is taken")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(open: &str, close: &str, levels: usize) -> String {
        format!("{}1{}", open.repeat(levels), close.repeat(levels))
    }

    fn is_taken(text: &str, max: usize) -> bool {
        check(text.as_bytes(), max).is_ok()
    }

    #[test]
    fn the_limit_is_the_last_depth_that_is_taken() {
        for (open, close) in [("[", "]"), ("{\"a\":", "}"), (" [\n", "\t]")] {
            assert!(is_taken(&nested(open, close, 128), 128));
            assert!(!is_taken(&nested(open, close, 129), 128));
        }
        assert!(is_taken("1", 0) && !is_taken("[]", 0));
        let refusal = format!("{:?}", check(b"[[]]", 1).unwrap_err());
        assert!(refusal.contains("nested deeper than 1 levels"), "{refusal}");
    }

    #[test]
    fn what_stands_side_by_side_is_not_deep() {
        let wide = format!("[{}]", vec!["[{}]"; 10_000].join(","));
        assert!(is_taken(&wide, 3) && !is_taken(&wide, 2));
    }

    #[test]
    fn brackets_within_strings_do_not_count() {
        let brackets = "[{".repeat(500);
        for string in
            [brackets.clone(), format!("\\\"{brackets}"), format!("{brackets}\\\\"), format!("é\\\\\\\"{brackets}")]
        {
            assert!(is_taken(&format!("[\"{string}\"]"), 1), "{string}");
            // The string has ended where it seems to end.
            assert!(!is_taken(&format!("[\"{string}\", []]"), 1), "{string}");
        }
        assert!(!is_taken("[\"\\\\\", [[]]]", 2));
    }

    #[test]
    fn what_is_no_json_is_left_to_the_reader() {
        for text in ["", "]]]]", "}{", "\"[[[", "nul", "\u{1}"] {
            assert!(is_taken(text, 1), "{text}");
        }
    }
}
