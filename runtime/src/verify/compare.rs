//! The judgement: the books of a case beside those of the undisturbed run. What a provider applied more often is doubled, what it
//! applied less often, though the run completed, is lost.

use std::collections::{BTreeMap, BTreeSet};

use super::cases::{Case, Kind, Trouble};
use super::differ::Differ;
use super::evidence::{Booked, Effect, Evidence};
use super::finding::{Code, Finding};
use super::look;

/// The status by which a simulated provider refuses for good.
const REFUSED: i32 = 402;

/// What a case shows beside the undisturbed run with the same kind of providers. `steady`: that run's output is the same every time.
pub fn findings(base: &Evidence, case: &Case, evidence: &Evidence, steady: bool) -> Vec<Finding> {
    let name = case.name.as_str();
    let mut found = look::at_any(name, base, evidence);
    found.extend(doubled(name, base, evidence));
    let trouble = match &case.kind {
        Kind::Trouble(trouble, _) => Some(*trouble),
        _ => None,
    };
    let same_output = evidence.result() == base.result();
    // A body that was told of a provider's trouble, and says so in its output, has lost nothing.
    let told = trouble == Some(Trouble::Rejected) || trouble.is_some() && !same_output;
    if evidence.is_completed() && base.is_completed() && !told {
        found.extend(lost(name, base, evidence));
        let reordered = matches!(case.kind, Kind::Reorder(_));
        if !same_output && steady && !reordered {
            found.push(output_changed(name, base, evidence).at(case.effect.as_ref()));
        }
    }
    if trouble == Some(Trouble::Rejected) {
        found.extend(look::rejection(name, evidence, REFUSED));
    }
    let explained = found.iter().any(|it| matches!(it.code, Code::RequestChanged | Code::UnnamedInOneSlot));
    if trouble.is_none() && base.is_completed() && evidence.state == "failed" && !explained {
        let failure = evidence.failure.as_ref().map(|failure| failure["code"].to_string()).unwrap_or_default();
        let what = format!("the run failed with {failure}, which it does not when nothing happens to it");
        found.push(Finding::new(Code::NotRecovered, name, what).at(case.effect.as_ref()));
    }
    if !case.settings.keyless {
        found.extend(evidence.open().map(|effect| {
            let what = "nobody can know whether it happened: the run waits for an answer, and nothing is sent again"
                .to_owned();
            Finding::new(Code::UnknownOutcome, name, what).at(Some(effect))
        }));
    }
    found
}

/// The whole run once more, on a fresh ledger and at providers that remember the first: the keys are the same, so nothing may be
/// applied, and no request may differ.
pub fn again(base: &Evidence, name: &str, evidence: &Evidence) -> Vec<Finding> {
    let mut found = doubled(name, base, evidence);
    found.extend(requests(name, base, &base.arrived, &behind(base, evidence), false));
    found
}

/// What arrived at each provider after all that arrived in the first run.
fn behind(base: &Evidence, evidence: &Evidence) -> Vec<Booked> {
    let mut known: BTreeMap<&str, usize> = BTreeMap::new();
    for booked in &base.arrived {
        *known.entry(&booked.origin).or_default() += 1;
    }
    let mut left = evidence.arrived.clone();
    left.retain(|booked| match known.get_mut(booked.origin.as_str()) {
        Some(count) if *count > 0 => {
            *count -= 1;
            false
        }
        _ => true,
    });
    left
}

/// Two whole runs with other random numbers, at another time.
pub fn fresh(name: &str, one: &Evidence, other: &Evidence) -> Vec<Finding> {
    let mut found = requests(name, one, &one.arrived, &other.arrived, true);
    for (effect, twin) in twins(&one.effects, &other.effects) {
        if effect.id != twin.id {
            let what = "its identity is made inside the body: it is another when the body runs with other random numbers, or later".to_owned();
            let differ = Differ::of(&effect.identity, &twin.identity);
            found.push(Finding::new(Code::UnstableKey, name, what).at(Some(effect)).with(differ));
        }
    }
    if let (Some(one_output), Some(other_output)) = (&one.output, &other.output)
        && one.result() != other.result()
    {
        let what = "two runs with the same input give different outputs".to_owned();
        let differ = Differ::of(one_output, other_output);
        found.push(Finding::new(Code::NondeterministicOutput, name, what).with(differ));
    }
    found
}

/// Effects at the same place in two runs: the first at a method and address beside the first there, and so on.
fn twins<'a>(one: &'a [Effect], other: &'a [Effect]) -> Vec<(&'a Effect, &'a Effect)> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut found = Vec::new();
    for effect in one {
        let slot = effect.slot();
        let place = seen.entry(slot.clone()).or_default();
        found.extend(other.iter().filter(|twin| twin.slot() == slot).nth(*place).map(|twin| (effect, twin)));
        *place += 1;
    }
    found
}

/// Requests that change something, of one run beside those of another. `loose`: keys may differ by what the effects are.
fn requests(name: &str, base: &Evidence, one: &[Booked], other: &[Booked], loose: bool) -> Vec<Finding> {
    let changes = |booked: &[Booked]| booked.iter().filter(|it| !it.is_read()).cloned().collect::<Vec<_>>();
    let (one, other) = (changes(one), changes(other));
    let mut found = Vec::new();
    for (number, (first, second)) in one.iter().zip(&other).enumerate() {
        let effect = base.effects.iter().find(|it| it.key.is_some() && it.key == first.key);
        let effect = effect.or_else(|| base.effects.iter().find(|it| it.slot() == first.slot()));
        let target = |booked: &Booked| format!("{} {}{}", booked.method, booked.origin, booked.path);
        let differ = Differ::of(&target(first), &target(second)).or_else(|| Differ::of(&first.body, &second.body));
        if differ.is_some() && !moved(first, &other) {
            let what = format!("request {} of the run is another when the body runs again", number + 1);
            found.push(Finding::new(Code::RequestChanged, name, what).at(effect).with(differ));
        } else if !loose && first.key != second.key && differ.is_none() {
            let (one, two) = (first.key.as_deref().unwrap_or("-"), second.key.as_deref().unwrap_or("-"));
            let what = "its key is another when the body runs again".to_owned();
            found.push(Finding::new(Code::UnstableKey, name, what).at(effect).with(Differ::of(one, two)));
        }
    }
    found
}

/// The same request is there, at another place: only the order of named effects differs.
fn moved(first: &Booked, other: &[Booked]) -> bool {
    other.iter().any(|it| it.key.is_some() && it.key == first.key && it.body == first.body && it.path == first.path)
}

/// How often a provider changed the world, by method, address, and for what is idempotent by itself by what was written.
fn tally(booked: &[Booked]) -> BTreeMap<String, Vec<&Booked>> {
    let mut all: BTreeMap<String, Vec<&Booked>> = BTreeMap::new();
    let mut written = BTreeSet::new();
    for line in booked {
        let idempotent = matches!(line.method.as_str(), "PUT" | "DELETE");
        if !idempotent || written.insert((line.slot(), line.body.clone())) {
            all.entry(line.slot()).or_default().push(line);
        }
    }
    all
}

fn doubled(name: &str, base: &Evidence, evidence: &Evidence) -> Vec<Finding> {
    let (before, now) = (tally(&base.applied), tally(&evidence.applied));
    let mut found = Vec::new();
    let mut strays: BTreeMap<String, Vec<&Booked>> = BTreeMap::new();
    for (slot, lines) in &now {
        match before.get(slot).map_or(0, Vec::len) {
            0 => strays.entry(lines[0].place()).or_default().extend(lines),
            usual if lines.len() > usual => {
                let what = format!("it was applied {} times, and without the fault {usual} times", lines.len());
                found.push(more(Code::Doubled, name, evidence, lines, what));
            }
            _ => {}
        }
    }
    let at = |tally: &BTreeMap<String, Vec<&Booked>>, place: &str| {
        tally.values().flatten().filter(|line| line.place() == place).count()
    };
    for (place, lines) in strays {
        let (usual, here) = (at(&before, &place), at(&now, &place));
        let (code, words) = if here > usual { (Code::Doubled, "was applied") } else { (Code::RequestChanged, "went") };
        let what =
            format!("{place} {words} at another address: {here} times in all, and without the fault {usual} times");
        found.push(more(code, name, base, &lines, what));
    }
    let more = evidence.files.keys().filter(|path| !base.files.contains_key(*path) && !is_temporary(path));
    found.extend(more.map(|path| Finding::new(Code::Doubled, name, format!("the file {path} was written as well"))));
    found
}

/// A finding about lines that should not be there.
fn more(code: Code, name: &str, evidence: &Evidence, lines: &[&Booked], what: String) -> Finding {
    let last = lines[lines.len() - 1];
    let twin = lines.iter().rev().skip(1).find(|line| line.body == last.body).or_else(|| lines.first());
    let by_key = evidence.effects.iter().find(|it| it.key.is_some() && it.key == last.key);
    let by_slot = || evidence.effects.iter().find(|it| it.slot() == last.slot());
    let by_place = || evidence.effects.iter().find(|it| it.method == last.method && it.url.starts_with(&last.origin));
    let differ = twin.and_then(|twin| {
        let key = |line: &Booked| line.key.clone().unwrap_or_default();
        Differ::of(&twin.body, &last.body).or_else(|| Differ::of(&key(twin), &key(last)))
    });
    let effect = by_key.or_else(by_slot).or_else(by_place);
    Finding::new(code, name, format!("{what}{}", keys(lines))).at(effect).with(differ)
}

fn keys(lines: &[&Booked]) -> String {
    let keys: BTreeSet<&str> = lines.iter().filter_map(|line| line.key.as_deref()).collect();
    if keys.len() < 2 {
        String::new()
    } else {
        format!(", under the keys {}", keys.into_iter().collect::<Vec<_>>().join(", "))
    }
}

fn lost(name: &str, base: &Evidence, evidence: &Evidence) -> Vec<Finding> {
    let (before, now) = (tally(&base.applied), tally(&evidence.applied));
    let mut found = Vec::new();
    for (slot, lines) in &before {
        let there = now.get(slot).map_or(0, Vec::len);
        let open = evidence.open().any(|effect| effect.slot() == *slot);
        let place = lines[0].place();
        let at = |booked: &[Booked]| booked.iter().filter(|line| line.place() == place).count();
        // As much was applied there, at another address: that is told as what it is.
        let elsewhere = at(&evidence.applied) >= at(&base.applied);
        if there < lines.len() && !open && !elsewhere {
            let what = format!("the run completed, and it was applied {there} times, not {}", lines.len());
            let effect = base.effects.iter().find(|effect| effect.slot() == *slot);
            found.push(Finding::new(Code::Lost, name, what).at(effect));
        }
    }
    for (path, digest) in &base.files {
        match evidence.files.get(path) {
            None => {
                found.push(Finding::new(Code::Lost, name, format!("the run completed, and there is no file {path}")))
            }
            Some(other) if other != digest => {
                found.push(Finding::new(Code::RequestChanged, name, format!("the file {path} has another content")));
            }
            Some(_) => {}
        }
    }
    found
}

/// Files on their way into place have names that begin with a dot.
fn is_temporary(path: &str) -> bool {
    path.rsplit('/').next().is_some_and(|name| name.starts_with('.'))
}

fn output_changed(name: &str, base: &Evidence, evidence: &Evidence) -> Finding {
    let (one, other) = (base.output.as_deref().unwrap_or_default(), evidence.output.as_deref().unwrap_or_default());
    let what = "the run completed with another output than without the fault".to_owned();
    Finding::new(Code::OutputChanged, name, what).with(Differ::of(one, other))
}

#[cfg(test)]
mod tests {
    use super::super::plan::Group;
    use super::super::stage::Settings;
    use super::*;

    fn booked(method: &str, path: &str, key: &str, body: &str) -> Booked {
        let text = str::to_owned;
        let origin = text("https://one.test");
        Booked { origin, method: text(method), path: text(path), key: Some(text(key)), body: text(body) }
    }

    fn completed(applied: Vec<Booked>) -> Evidence {
        let arrived = applied.clone();
        Evidence {
            state: "completed".to_owned(),
            output: Some("1".to_owned()),
            applied,
            arrived,
            ..Evidence::default()
        }
    }

    fn case(kind: Kind) -> Case {
        let settings = Settings::default();
        Case { number: 1, name: "c".to_owned(), group: Group::Crash, settings, kind, effect: None }
    }

    fn codes(found: &[Finding]) -> Vec<Code> {
        found.iter().map(|finding| finding.code).collect()
    }

    #[test]
    fn what_is_booked_more_often_is_doubled_and_less_often_is_lost() {
        let one = booked("POST", "/a", "k", "x");
        let base = completed(vec![one.clone()]);
        let twice = completed(vec![one.clone(), booked("POST", "/a", "l", "x")]);
        let case = case(Kind::Undisturbed);
        let found = findings(&base, &case, &twice, true);
        assert_eq!(codes(&found), [Code::Doubled]);
        assert!(found[0].what.contains("under the keys k, l"), "{}", found[0].what);
        assert_eq!(codes(&findings(&base, &case, &completed(Vec::new()), true)), [Code::Lost]);
        assert!(findings(&base, &case, &base, true).is_empty());
    }

    #[test]
    fn what_is_idempotent_by_its_method_may_come_again() {
        let put = booked("PUT", "/a", "k", "x");
        let base = completed(vec![put.clone()]);
        let case = case(Kind::Undisturbed);
        assert!(findings(&base, &case, &completed(vec![put.clone(), put.clone()]), true).is_empty());
        let other = completed(vec![put, booked("PUT", "/a", "k", "y")]);
        assert_eq!(codes(&findings(&base, &case, &other, true)), [Code::Doubled]);
    }

    #[test]
    fn a_body_that_tells_of_the_trouble_has_lost_nothing() {
        let base = completed(vec![booked("POST", "/a", "k", "x")]);
        let target = super::super::cases::Target { url: String::new(), place: 1 };
        let case = case(Kind::Trouble(Trouble::BrokenBeforeApply, target));
        let silent = completed(Vec::new());
        assert_eq!(codes(&findings(&base, &case, &silent, true)), [Code::Lost]);
        let told = Evidence { output: Some("0".to_owned()), ..silent };
        assert!(findings(&base, &case, &told, true).is_empty());
    }

    #[test]
    fn a_second_run_must_send_the_same_under_the_same_keys() {
        let base = completed(vec![booked("POST", "/a", "k", "x")]);
        let with = |second: Booked| {
            let mut evidence = base.clone();
            evidence.arrived.push(second);
            codes(&again(&base, "c", &evidence))
        };
        assert!(with(booked("POST", "/a", "k", "x")).is_empty());
        assert_eq!(with(booked("POST", "/a", "k", "y")), [Code::RequestChanged]);
        assert_eq!(with(booked("POST", "/a", "l", "x")), [Code::UnstableKey]);
        assert_eq!(with(booked("POST", "/b", "k", "x")), [Code::RequestChanged]);
    }

    #[test]
    fn another_address_is_told_as_one_and_a_second_one_as_doubled() {
        let base = completed(vec![booked("POST", "/a/1", "k", "x")]);
        let case = case(Kind::Undisturbed);
        let moved = completed(vec![booked("POST", "/a/2", "k", "x")]);
        assert_eq!(codes(&findings(&base, &case, &moved, true)), [Code::RequestChanged]);
        let both = completed(vec![booked("POST", "/a/1", "k", "x"), booked("POST", "/a/2", "l", "x")]);
        assert_eq!(codes(&findings(&base, &case, &both, true)), [Code::Doubled]);
    }
}
