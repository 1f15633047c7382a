//! A report as JUnit XML, for programs that show test results: one test case for each case.

use std::time::Duration;

use quick_junit::{NonSuccessKind, Report as Document, TestCase, TestCaseStatus, TestSuite};

use super::Report;
use crate::verify::finding::{Code, Severity};

/// The document cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("the JUnit report cannot be written: {0}")]
pub struct Unwritable(#[from] quick_junit::SerializeError);

/// The whole document. A case fails with what was doubled or lost in it, and with warnings too where it is strict; else these are
/// in its output.
pub fn junit(report: &Report, strict: bool) -> Result<String, Unwritable> {
    let mut document = Document::new("deedbox verify");
    document.set_time(seconds(report.seconds));
    let mut suite = TestSuite::new(report.activity.clone());
    suite.set_time(seconds(report.seconds));
    for case in &report.cases {
        let counts = |code: &Code| code.severity() == Severity::Error || strict && code.severity() == Severity::Warning;
        let bad = case.findings.iter().find(|code| counts(code));
        let status = match bad {
            Some(code) => {
                let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
                status.set_type(code.as_str()).set_message(case.what.join("; "));
                status
            }
            None => TestCaseStatus::success(),
        };
        let mut test = TestCase::new(format!("{} {}", case.number, case.name), status);
        test.set_classname(format!("{}.{}", report.activity, case.group)).set_time(seconds(case.seconds));
        if bad.is_none() && !case.what.is_empty() {
            test.set_system_out(case.what.join("\n"));
        }
        suite.add_test_case(test);
    }
    document.add_test_suite(suite);
    Ok(document.to_string()?)
}

fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::tests::report;
    use super::*;

    #[test]
    fn each_case_is_a_test_and_the_doubled_one_fails() {
        let xml = junit(&report(), false).unwrap();
        assert_eq!(xml.matches("<testcase ").count(), 2, "{xml}");
        assert_eq!(xml.matches("<failure ").count(), 1, "{xml}");
        assert!(xml.contains("type=\"doubled\"") && xml.contains("case 1 &lt;&amp;&gt;"), "{xml}");
    }
}
