//! The whole of a verification in its order: the template, the undisturbed run, its repetitions, and then every case that follows
//! from it, several at once, for as long as there is time.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use futures_util::StreamExt;

use super::cases::{Case, Cases, Kind};
use super::drive::{self, Played};
use super::evidence::Evidence;
use super::finding::{Code, Finding, note};
use super::plan::{Group, Plan};
use super::report::{CaseReport, EffectReport, Report, Tally};
use super::stage::{Settings, Stage};
use super::{Error, compare, conventions, look};

/// The least time between two runs that must not agree about the time by chance.
const APART: Duration = Duration::from_millis(1_100);

/// Verifies an activity. `tell`: hears what is being done, for people.
///
/// Fails when the component, the input or the policy cannot be used; what is wrong with the activity is in the report.
pub async fn verify(plan: Plan, tell: &(dyn Fn(&str) + Sync)) -> Result<Report, Error> {
    let begun = Instant::now();
    tell("preparing a database and compiling the component");
    let stage = Stage::set_up(plan).await?;
    let mut suite = Suite { stage: &stage, tell, begun, count: 0, report: Report::new(&stage.activity) };
    let done = suite.run().await;
    let mut report = suite.report;
    stage.remove_template().await;
    done?;
    report.findings.sort_by_key(|finding| (finding.severity, finding.code));
    report.seconds = begun.elapsed().as_secs_f64();
    Ok(report)
}

struct Suite<'a> {
    stage: &'a Stage,
    tell: &'a (dyn Fn(&str) + Sync),
    begun: Instant,
    count: usize,
    report: Report,
}

impl Suite<'_> {
    async fn run(&mut self) -> Result<(), Error> {
        let steady = self.with_keys().await?;
        let takes_keys = self.stage.stand_ins.iter().any(|stand_in| conventions::takes_keys(&stand_in.profile));
        if takes_keys && self.wants(Group::Keyless) {
            let case = self.undisturbed(
                "no provider keys: undisturbed",
                Group::Keyless,
                Settings { keyless: true, ..Settings::default() },
            );
            let played = self.play(&case, None).await?;
            let base = played.evidence.clone();
            self.record(&case, &played, Vec::new());
            let cases = Cases::of(&base, &played.counted, true, |group| self.wants(group));
            self.all(&base, cases, steady).await?;
        }
        Ok(())
    }

    /// Everything with the providers as they are; whether the output is the same every time.
    async fn with_keys(&mut self) -> Result<bool, Error> {
        (self.tell)("running it undisturbed");
        let case = self.undisturbed("undisturbed", Group::Repeat, Settings::default());
        let books = self.stage.plan().dir.join("books");
        let played = self.play(&case, Some(books.clone())).await?;
        let base = played.evidence.clone();
        let mut found = look::at_first(&case.name, &base, &self.stage.plan().input);
        found.extend(look::at_any(&case.name, &base, &base));
        self.report.effects = base.effects.iter().map(|effect| EffectReport::of(effect, &base)).collect();
        self.usable(&base, &found)?;
        self.record(&case, &played, found);
        self.report.waits_for_signal.clone_from(&base.waits_for_signal);
        let steady = if self.wants(Group::Repeat) { self.repeat(&base, books).await? } else { true };
        let cases = Cases::of(&base, &played.counted, false, |group| self.wants(group));
        self.all(&base, cases, steady).await?;
        Ok(steady)
    }

    /// A run that comes to nothing by itself shows nothing.
    fn usable(&self, base: &Evidence, found: &[Finding]) -> Result<(), Error> {
        let Some(failure) = base.failure.as_ref().filter(|_| base.state == "failed") else { return Ok(()) };
        let code = failure["code"].as_str().unwrap_or("?");
        if found.is_empty() || matches!(code, "denied" | "invalid-input") {
            let message = failure["message"].as_str().unwrap_or_default();
            return Err(Error::Usage(format!(
                "the run fails with nothing done to it, so there is nothing to compare: {code}: {message}\n\
                 Correct --input or --policy, and name the providers that it calls: --provider ORIGIN=PROFILE."
            )));
        }
        Ok(())
    }

    /// The whole run again with the same keys, and twice with other random numbers; whether its output is always the same.
    async fn repeat(&mut self, base: &Evidence, books: std::path::PathBuf) -> Result<bool, Error> {
        (self.tell)("running it again from nothing");
        let keyed = self.stage.stand_ins.iter().all(|stand_in| conventions::takes_keys(&stand_in.profile));
        if keyed && base.is_completed() && !self.stage.plan().live {
            let case = self.undisturbed("the whole run again on a fresh ledger", Group::Repeat, Settings::default());
            let played = self.play(&case, Some(books)).await?;
            let found = compare::again(base, &case.name, &played.evidence);
            self.record(&case, &played, found);
        }
        let settings = Settings { fresh: true, ..Settings::default() };
        let case = self.undisturbed("other random numbers, first run", Group::Repeat, settings);
        let first = self.play(&case, None).await?;
        self.record(&case, &first, Vec::new());
        tokio::time::sleep(APART).await;
        let case = self.undisturbed("other random numbers, second run", Group::Repeat, settings);
        let second = self.play(&case, None).await?;
        let found = compare::fresh(&case.name, &first.evidence, &second.evidence);
        let steady = !found.iter().any(|finding| finding.code == Code::NondeterministicOutput);
        self.record(&case, &second, found);
        Ok(steady)
    }

    /// Plays cases, several at once, until the bounds are reached.
    async fn all(&mut self, base: &Evidence, cases: Cases, steady: bool) -> Result<(), Error> {
        let Cases { mut all, left_out } = cases;
        self.report.left_out.extend(left_out);
        let room = self.stage.plan().max_cases.saturating_sub(self.count);
        if all.len() > room {
            self.report.left_out.push(format!("{} cases beyond --max-cases", all.len() - room));
            all.truncate(room);
        }
        for case in &mut all {
            self.count += 1;
            case.number = self.count;
        }
        let total = all.len();
        (self.tell)(&format!("{total} cases"));
        let (stage, end) = (self.stage, self.begun + self.stage.plan().time);
        let mut playing = futures_util::stream::iter(all)
            .map(|case| async move {
                let late = Instant::now() >= end;
                let played = if late { None } else { Some(drive::play(stage, &case, None).await) };
                (case, played)
            })
            .buffer_unordered(stage.plan().at_once.max(1));
        let mut late = 0;
        while let Some((case, played)) = playing.next().await {
            let Some(played) = played else {
                late += 1;
                continue;
            };
            let played = played.map_err(|error| named(&case, error))?;
            let found = compare::findings(base, &case, &played.evidence, steady);
            self.record(&case, &played, found);
        }
        drop(playing);
        if late > 0 {
            self.report.left_out.push(format!("{late} cases beyond --time"));
        }
        Ok(())
    }

    fn wants(&self, group: Group) -> bool {
        self.stage.plan().groups.contains(&group)
    }

    fn undisturbed(&mut self, name: &str, group: Group, settings: Settings) -> Case {
        self.count += 1;
        Case { number: self.count, name: name.to_owned(), group, settings, kind: Kind::Undisturbed, effect: None }
    }

    async fn play(&self, case: &Case, books: Option<std::path::PathBuf>) -> Result<Played, Error> {
        drive::play(self.stage, case, books).await.map_err(|error| named(case, error))
    }

    fn record(&mut self, case: &Case, played: &Played, found: Vec<Finding>) {
        let codes: BTreeSet<Code> = found.iter().map(|finding| finding.code).collect();
        let failed = found.iter().filter(|it| it.severity != super::finding::Severity::Note);
        let what = failed.map(|finding| format!("{}: {}", finding.code.as_str(), finding.what)).collect();
        self.report.cases.push(CaseReport {
            number: case.number,
            name: case.name.clone(),
            group: case.group.as_str(),
            provider_keys: !case.settings.keyless,
            happened: played.happened,
            end: played.evidence.state.clone(),
            attempts: played.evidence.attempts.len(),
            open_questions: played.evidence.open().count(),
            applied: played.evidence.applied.len(),
            seconds: played.took.as_secs_f64(),
            findings: codes.into_iter().collect(),
            what,
        });
        for finding in found {
            note(&mut self.report.findings, finding);
        }
        self.report.tally = Tally::of(&self.report);
    }
}

fn named(case: &Case, error: Error) -> Error {
    match error {
        Error::Actor(why) => Error::Actor(format!("case {} ({}): {why}", case.number, case.name)),
        other => other,
    }
}
