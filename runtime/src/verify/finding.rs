//! What can be found: a code that programs rely on, how grave it is, and the mend in one sentence.

use serde::Serialize;

use super::differ::Differ;
use super::evidence::Effect;

/// What is wrong. The names are fixed: see docs/verify.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Code {
    /// The outside world changed twice.
    Doubled,
    /// The run completed, and a change is missing.
    Lost,
    /// A key or an identity is made inside the body, and differs when it runs again.
    UnstableKey,
    /// A request differs when the body runs again.
    RequestChanged,
    /// Effects without names share a method and an address.
    UnnamedInOneSlot,
    /// The body sends again by itself.
    RetryLoop,
    /// A provider's final refusal is raised as a failure that is tried again.
    RejectionRetried,
    /// The run failed after changes were made, with no fault from outside.
    Partial,
    /// After a fault the run ended otherwise than without.
    NotRecovered,
    /// After a fault the run completed with another output.
    OutputChanged,
    /// The output differs from run to run.
    NondeterministicOutput,
    /// Near to a limit, or beyond it.
    PayloadTooLarge,
    /// A person has to find out whether it happened.
    UnknownOutcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    Error,
    Warning,
    Note,
}

impl Severity {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

impl Code {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Doubled => "doubled",
            Self::Lost => "lost",
            Self::UnstableKey => "unstable-key",
            Self::RequestChanged => "request-changed",
            Self::UnnamedInOneSlot => "unnamed-in-one-slot",
            Self::RetryLoop => "retry-loop",
            Self::RejectionRetried => "rejection-retried",
            Self::Partial => "partial",
            Self::NotRecovered => "not-recovered",
            Self::OutputChanged => "output-changed",
            Self::NondeterministicOutput => "nondeterministic-output",
            Self::PayloadTooLarge => "payload-too-large",
            Self::UnknownOutcome => "unknown-outcome",
        }
    }

    pub const fn severity(self) -> Severity {
        match self {
            Self::Doubled | Self::Lost => Severity::Error,
            Self::UnknownOutcome => Severity::Note,
            _ => Severity::Warning,
        }
    }

    /// What to do about it.
    pub const fn mend(self) -> &'static str {
        match self {
            Self::Doubled => {
                "Give the effect one name that is the same in every attempt, and let nothing in its key or address come from the attempt, the time or what an earlier attempt left."
            }
            Self::Lost => {
                "Note progress only after the effect has been answered, and wait for each answer and look at its status."
            }
            Self::UnstableKey => {
                "Take keys from ctx.idempotency_key(), ctx.subkey(name) or the input, never from a random number or the time."
            }
            Self::RequestChanged => {
                "Build the request from the input and from recorded answers alone; take a time or a random value once, and keep it in the checkpoint."
            }
            Self::UnnamedInOneSlot => "Give each of these effects a name of its own.",
            Self::RetryLoop => {
                "Return a retryable failure instead: the host tries again, with a pause, and across crashes."
            }
            Self::RejectionRetried => "Return a business rejection as a value, or as a permanent failure.",
            Self::Partial => "Check what can fail before the first effect, or undo what was done with another effect.",
            Self::NotRecovered => {
                "Let a second attempt take the same way as the first; raise what may pass as a retryable failure."
            }
            Self::OutputChanged => {
                "Decide by recorded answers of effects, not by a look at the world that an earlier attempt has changed."
            }
            Self::NondeterministicOutput => {
                "Leave times and random values out of the output, unless nobody compares it."
            }
            Self::PayloadTooLarge => "Put the bulk into a file or at a provider, and pass its name.",
            Self::UnknownOutcome => {
                "Use a provider's key or a look-up where there is one, or state policy.on_unknown; else a person resolves it."
            }
        }
    }
}

/// One finding, in the first case that shows it.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    pub code: Code,
    pub severity: Severity,
    pub effect: Option<Named>,
    /// The first case that shows it.
    pub case: String,
    /// How many cases show it.
    pub cases: usize,
    pub what: String,
    pub differ: Option<Differ>,
    pub mend: &'static str,
}

/// How an effect is told from others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Named {
    pub identity: String,
    pub keying: String,
    pub slot: String,
    pub key: Option<String>,
}

impl Named {
    pub fn of(effect: &Effect) -> Self {
        Self {
            identity: effect.identity.clone(),
            keying: effect.keying.clone(),
            slot: effect.slot(),
            key: effect.key.clone(),
        }
    }
}

impl Finding {
    pub fn new(code: Code, case: &str, what: String) -> Self {
        Self {
            code,
            severity: code.severity(),
            effect: None,
            case: case.to_owned(),
            cases: 1,
            what,
            differ: None,
            mend: code.mend(),
        }
    }

    pub fn at(self, effect: Option<&Effect>) -> Self {
        Self { effect: effect.map(Named::of), ..self }
    }

    pub fn with(self, differ: Option<Differ>) -> Self {
        Self { differ, ..self }
    }

    /// Whether it tells of the same thing as another.
    fn is_like(&self, other: &Self) -> bool {
        let slot = |finding: &Self| finding.effect.as_ref().map(|effect| effect.slot.clone());
        // These are about the run as a whole, whatever effect the fault was at.
        let of_the_run = matches!(self.code, Code::OutputChanged | Code::NotRecovered);
        self.code == other.code && (of_the_run || slot(self) == slot(other))
    }
}

/// Adds a finding, or counts it where it is known. One with bytes to show takes the place of one without.
pub fn note(all: &mut Vec<Finding>, finding: Finding) {
    match all.iter_mut().find(|known| known.is_like(&finding)) {
        Some(known) => {
            known.cases += 1;
            if known.differ.is_none() && finding.differ.is_some() {
                *known = Finding { cases: known.cases, ..finding };
            }
        }
        None => all.push(finding),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_found_again_is_counted_and_not_told_twice() {
        let mut all = Vec::new();
        for case in ["a", "b"] {
            note(&mut all, Finding::new(Code::Doubled, case, "twice".to_owned()));
        }
        note(&mut all, Finding::new(Code::Lost, "c", "gone".to_owned()));
        let differ = Differ::of("1", "2");
        note(&mut all, Finding::new(Code::Lost, "d", "gone".to_owned()).with(differ.clone()));
        let told: Vec<_> = all.iter().map(|it| (it.code, it.case.as_str(), it.cases)).collect();
        assert_eq!(told, [(Code::Doubled, "a", 2), (Code::Lost, "d", 2)]);
        assert_eq!(all[1].differ, differ);
    }

    #[test]
    fn names_are_those_of_programs() {
        let text = serde_json::to_string(&Code::UnnamedInOneSlot).unwrap();
        assert_eq!(text, format!("\"{}\"", Code::UnnamedInOneSlot.as_str()));
        assert_eq!((Code::Lost.severity(), Code::UnknownOutcome.severity()), (Severity::Error, Severity::Note));
    }
}
