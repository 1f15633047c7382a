//! What a verification tells: the effects that it found, each case, each finding, and what was left out. The shape for programs
//! is documented in docs/verify.md, and nothing in it is ever taken away or renamed.

mod junit;
mod text;

use serde::Serialize;

use super::evidence::{Effect, Evidence};
use super::finding::{Code, Finding, Severity};

pub use junit::{Unwritable, junit};
pub use text::text;

#[derive(Clone, Debug, Serialize)]
pub struct Report {
    pub activity: String,
    pub tally: Tally,
    pub effects: Vec<EffectReport>,
    /// The gravest first.
    pub findings: Vec<Finding>,
    pub cases: Vec<CaseReport>,
    /// In words.
    pub left_out: Vec<String>,
    /// A signal that the undisturbed run waits for, and did not get.
    pub waits_for_signal: Option<String>,
    pub seconds: f64,
}

/// The counts by which it is judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    pub effects: usize,
    pub cases: usize,
    /// Findings of each severity.
    pub errors: usize,
    pub warnings: usize,
    pub notes: usize,
    /// Cases that ended with a question for a person.
    pub open_questions: usize,
}

/// An effect of the undisturbed run.
#[derive(Clone, Debug, Serialize)]
pub struct EffectReport {
    pub id: String,
    pub identity: String,
    /// `business-identity` or `activity-recipe`.
    pub keying: String,
    pub method: String,
    pub url: String,
    pub provider: String,
    pub key: Option<String>,
    pub sends: usize,
    pub state: String,
    pub status: Option<i32>,
}

#[derive(Clone, Debug, Serialize)]
pub struct CaseReport {
    pub number: usize,
    pub name: String,
    pub group: &'static str,
    pub provider_keys: bool,
    /// What the case does to the run was done to it. False: the run did not come to that place.
    pub happened: bool,
    /// The state of the run: `completed`, `failed`, `waiting` …
    pub end: String,
    pub attempts: usize,
    pub open_questions: usize,
    /// Changes of the world that the providers booked.
    pub applied: usize,
    pub seconds: f64,
    pub findings: Vec<Code>,
    /// Errors and warnings, in words.
    pub what: Vec<String>,
}

impl Report {
    pub fn new(activity: &str) -> Self {
        Self {
            activity: activity.to_owned(),
            tally: Tally::default(),
            effects: Vec::new(),
            findings: Vec::new(),
            cases: Vec::new(),
            left_out: Vec::new(),
            waits_for_signal: None,
            seconds: 0.0,
        }
    }

    /// Whether it counts as failed: something doubled or lost, or, where warnings count, any of them.
    pub fn is_bad(&self, strict: bool) -> bool {
        self.tally.errors > 0 || strict && self.tally.warnings > 0
    }

    /// The last line for people.
    pub fn verdict(&self) -> String {
        let count = |code: Code| self.findings.iter().filter(|finding| finding.code == code).count();
        let ended = match (count(Code::Doubled), count(Code::Lost)) {
            (0, 0) => "nothing doubled".to_owned(),
            (doubled, 0) => format!("{doubled} doubled"),
            (0, lost) => format!("nothing doubled, {lost} lost"),
            (doubled, lost) => format!("{doubled} doubled, {lost} lost"),
        };
        let warnings = match self.tally.warnings {
            0 => String::new(),
            1 => ", 1 warning".to_owned(),
            many => format!(", {many} warnings"),
        };
        let Tally { effects, cases, .. } = self.tally;
        format!("verify: {}, {}, {ended}{warnings}", counted(effects, "effect"), counted(cases, "case"))
    }
}

impl Tally {
    pub fn of(report: &Report) -> Self {
        let of = |severity| report.findings.iter().filter(|finding| finding.severity == severity).count();
        Self {
            effects: report.effects.len(),
            cases: report.cases.len(),
            errors: of(Severity::Error),
            warnings: of(Severity::Warning),
            notes: of(Severity::Note),
            open_questions: report.cases.iter().filter(|case| case.open_questions > 0).count(),
        }
    }
}

impl EffectReport {
    pub fn of(effect: &Effect, evidence: &Evidence) -> Self {
        Self {
            id: effect.id.clone(),
            identity: effect.identity.clone(),
            keying: effect.keying.clone(),
            method: effect.method.clone(),
            url: effect.url.clone(),
            provider: effect.provider.clone(),
            key: effect.key.clone(),
            sends: evidence.sends.iter().filter(|send| send.effect == effect.id).count(),
            state: effect.state.clone(),
            status: effect.status,
        }
    }
}

/// `1 case`, `2 cases`.
pub(super) fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A report with one doubled effect.
    pub fn report() -> Report {
        let mut report = Report::new("charge-once");
        report.effects.push(EffectReport {
            id: "00".to_owned(),
            identity: "charge".to_owned(),
            keying: "activity-recipe".to_owned(),
            method: "POST".to_owned(),
            url: "https://one.test/v1/charges".to_owned(),
            provider: "stripe".to_owned(),
            key: Some("7c1a".to_owned()),
            sends: 1,
            state: "completed".to_owned(),
            status: Some(201),
        });
        let finding = Finding::new(Code::Doubled, "death after-apply 1", "it was applied 2 times".to_owned());
        report.findings.push(finding.with(super::super::differ::Differ::of("{\"a\":1}", "{\"a\":2}")));
        for (number, findings) in [(1, Vec::new()), (2, vec![Code::Doubled])] {
            let what = findings.iter().map(|_: &Code| "doubled: it was applied 2 times".to_owned()).collect();
            report.cases.push(CaseReport {
                number,
                name: format!("case {number} <&>"),
                group: "crash",
                provider_keys: true,
                happened: true,
                end: "completed".to_owned(),
                attempts: 2,
                open_questions: 0,
                applied: number,
                seconds: 0.25,
                findings,
                what,
            });
        }
        report.tally = Tally::of(&report);
        report
    }

    #[test]
    fn the_last_line_says_what_doubled() {
        assert_eq!(report().verdict(), "verify: 1 effect, 2 cases, 1 doubled");
        assert_eq!(Report::new("a").verdict(), "verify: 0 effects, 0 cases, nothing doubled");
    }

    #[test]
    fn warnings_count_where_it_is_strict() {
        assert!(report().is_bad(false));
        let mut report = Report::new("a");
        report.findings.push(Finding::new(Code::RetryLoop, "c", String::new()));
        report.tally = Tally::of(&report);
        assert!(!report.is_bad(false) && report.is_bad(true));
        assert_eq!(report.verdict(), "verify: 0 effects, 0 cases, nothing doubled, 1 warning");
    }

    #[test]
    fn the_shape_for_programs_has_its_names() {
        let value = serde_json::to_value(report()).unwrap();
        assert_eq!(value["findings"][0]["code"], "doubled");
        assert_eq!(value["findings"][0]["severity"], "error");
        assert_eq!(value["findings"][0]["differ"]["one"], "{\"a\":1}");
        assert_eq!(value["cases"][1]["findings"][0], "doubled");
        assert_eq!(value["effects"][0]["identity"], "charge");
        assert_eq!(value["tally"]["errors"], 1);
    }
}
