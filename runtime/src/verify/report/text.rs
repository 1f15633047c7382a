//! A report for people: the effects first, then what was found, and one last line.

use std::fmt::Write;

use super::{Report, counted};
use crate::verify::finding::Finding;

/// `table`: how rows under a heading are set.
pub fn text(report: &Report, table: impl Fn(&[&'static str], Vec<Vec<String>>) -> String) -> String {
    let rows = report.effects.iter().map(|effect| {
        vec![
            effect.identity.clone(),
            if effect.keying == "business-identity" { "business" } else { "this run" }.to_owned(),
            format!("{} {}", effect.method, effect.url),
            effect.provider.clone(),
            effect.key.clone().unwrap_or_default(),
            effect.sends.to_string(),
        ]
    });
    let mut text = if report.effects.is_empty() {
        "no effects\n".to_owned()
    } else {
        table(&["effect", "of", "request", "provider", "key", "sends"], rows.collect())
    };
    for finding in &report.findings {
        text.push_str(&told(finding));
    }
    if let Some(signal) = &report.waits_for_signal {
        // A text that cannot be written into a string does not exist.
        let _ = writeln!(
            text,
            "\nThe run waits for the signal `{signal}`; give it with --signal {signal}=JSON to see what follows."
        );
    }
    let open = report.tally.open_questions;
    if open > 0 {
        let _ = writeln!(
            text,
            "\n{} ended with a question for a person, as they must where a provider takes no key.",
            counted(open, "case")
        );
    }
    let missed = report.cases.iter().filter(|case| !case.happened).count();
    if missed > 0 {
        let _ = writeln!(
            text,
            "\nIn {} the run did not come to the place where something was to happen.",
            counted(missed, "case")
        );
    }
    if !report.left_out.is_empty() {
        let _ = writeln!(text, "\nLeft out: {}.", report.left_out.join("; "));
    }
    let _ = write!(text, "\n{}", report.verdict());
    text
}

fn told(finding: &Finding) -> String {
    let mut text = format!("\n{}: {}", finding.severity.as_str(), finding.code.as_str());
    if let Some(effect) = &finding.effect {
        let _ = write!(text, "  {}", effect.identity);
        if !effect.identity.starts_with(&effect.slot) {
            let _ = write!(text, " ({})", effect.slot);
        }
    }
    let more = match finding.cases {
        1 => String::new(),
        many => format!(", and in {} more", many - 1),
    };
    let _ = write!(text, "\n  {}\n  case: {}{more}\n", finding.what, finding.case);
    if let Some(differ) = &finding.differ {
        let _ = write!(text, "  differs at byte {}:\n    {}\n    {}\n", differ.at, differ.one, differ.other);
    }
    let _ = writeln!(text, "  mend: {}", finding.mend);
    text
}

#[cfg(test)]
mod tests {
    use super::super::tests::report;
    use super::*;

    #[test]
    fn effects_come_first_and_the_verdict_last() {
        let table =
            |heads: &[&str], rows: Vec<Vec<String>>| format!("{}\n{}\n", heads.join("|"), rows.concat().join("|"));
        let text = text(&report(), table);
        assert!(text.starts_with("effect|of|request"), "{text}");
        assert!(
            text.contains("error: doubled") && text.contains("differs at byte 5") && text.contains("mend: "),
            "{text}"
        );
        assert!(text.ends_with("verify: 1 effect, 2 cases, 1 doubled"), "{text}");
    }
}
