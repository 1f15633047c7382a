//! The cases: what is done to the run, made from what the first, undisturbed run showed. Each stands for itself. What is left out
//! because there is too much of it is told.

use super::evidence::{Effect, Evidence};
use super::plan::Group;
use super::points::Counted;
use super::providers::origin_of;
use super::stage::Settings;
use crate::probe::Point;

/// Sends of the first run at which something is done to it; more are left out.
const MOST_SENDS: usize = 12;
/// Orders of one group of effects that are under way at once.
const MOST_ORDERS: usize = 5;

#[derive(Clone, Debug)]
pub struct Case {
    pub number: usize,
    pub name: String,
    pub group: Group,
    pub settings: Settings,
    pub kind: Kind,
    /// The effect at which it happens.
    pub effect: Option<Effect>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nothing is done to it.
    Undisturbed,
    /// The worker dies; another goes on.
    Die(Where),
    /// The lease is lost at a point; another worker does the whole run, and then the first one wakes.
    Late(Point, usize),
    /// The provider answers one send in an unusual way.
    Trouble(Trouble, Target),
    /// Effects that are under way at once are claimed in this order, and the worker dies once the first is settled.
    Reorder(Vec<usize>),
}

/// Where a worker dies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Where {
    /// At a point, the so-manieth time.
    Probe(Point, usize),
    /// The provider has the request and has not applied it.
    Send(Target),
    /// The provider has applied it and not answered.
    Apply(Target),
}

/// A send, as its provider counts it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    pub url: String,
    /// Its place, from 1, among the requests to that origin that change something.
    pub place: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    SlowBeforeApply,
    SlowAfterApply,
    TooMany,
    BrokenBeforeApply,
    BrokenAfterApply,
    CutAfterApply,
    Rejected,
}

impl Trouble {
    const ALL: [(Self, &'static str); 7] = [
        (Self::SlowBeforeApply, "time-out, not applied"),
        (Self::SlowAfterApply, "time-out, applied"),
        (Self::TooMany, "429"),
        (Self::BrokenBeforeApply, "500, not applied"),
        (Self::BrokenAfterApply, "500, applied"),
        (Self::CutAfterApply, "cut, applied"),
        (Self::Rejected, "402"),
    ];

    pub const fn is_slow(self) -> bool {
        matches!(self, Self::SlowBeforeApply | Self::SlowAfterApply)
    }
}

/// The cases of one kind of providers, and what was left out.
#[derive(Debug, Default)]
pub struct Cases {
    pub all: Vec<Case>,
    pub left_out: Vec<String>,
}

/// A send of the first run with what it is known by.
struct Sent<'a> {
    /// From 1.
    number: usize,
    effect: &'a Effect,
    target: Option<Target>,
}

impl Cases {
    /// The cases that follow from a first run. `groups` says which kinds are wanted.
    pub fn of(base: &Evidence, counted: &Counted, keyless: bool, wanted: impl Fn(Group) -> bool) -> Self {
        let mut cases = Self::default();
        let mut sends = sends(base);
        if sends.len() > MOST_SENDS {
            cases.left_out.push(format!(
                "{} of {} sends, at which nothing was done",
                sends.len() - MOST_SENDS,
                sends.len()
            ));
            sends.truncate(MOST_SENDS);
        }
        let settings = Settings { keyless, ..Settings::default() };
        for sent in &sends {
            if wanted(Group::Crash) {
                cases.deaths(sent, settings);
            }
            if wanted(Group::Overlap) {
                cases.overlaps(sent, settings);
            }
            if wanted(Group::Answers) {
                cases.troubles(sent, settings);
            }
        }
        if wanted(Group::Crash) {
            for (point, word) in [(Point::AfterReturn, "after-return"), (Point::BeforeFinish, "before-finish")] {
                let kind = Kind::Die(Where::Probe(point, 1));
                cases.add(Group::Crash, settings, kind, format!("death {word}"), None);
            }
        }
        if wanted(Group::Overlap) {
            let kind = Kind::Late(Point::BeforeFinish, 1);
            cases.add(Group::Overlap, settings, kind, "lease lost before-finish".to_owned(), None);
        }
        if wanted(Group::Order) {
            cases.orders(counted, settings);
        }
        cases
    }

    fn add(&mut self, group: Group, settings: Settings, kind: Kind, name: String, effect: Option<&Effect>) {
        let keys = if settings.keyless { "no provider keys" } else { "provider keys" };
        let at = effect.map_or(String::new(), |effect| format!(" of {}", effect.identity));
        let name = format!("{keys}: {name}{at}");
        self.all.push(Case { number: 0, name, group, settings, kind, effect: effect.cloned() });
    }

    fn deaths(&mut self, sent: &Sent<'_>, settings: Settings) {
        let mut places = vec![
            (Where::Probe(Point::BeforeClaim, sent.number), "before-claim"),
            (Where::Probe(Point::AfterClaim, sent.number), "after-claim"),
        ];
        match &sent.target {
            Some(target) => {
                places.push((Where::Send(target.clone()), "after-send"));
                places.push((Where::Apply(target.clone()), "after-apply"));
            }
            None if sent.effect.method == "WRITE" => {
                places.push((Where::Probe(Point::BeforeRename, 1), "before-rename"))
            }
            None => {}
        }
        places.push((Where::Probe(Point::AfterResponse, sent.number), "after-response"));
        places.push((Where::Probe(Point::AfterSettle, sent.number), "after-settle"));
        for (place, word) in places {
            let name = format!("death {word} {}", sent.number);
            self.add(Group::Crash, settings, Kind::Die(place), name, Some(sent.effect));
        }
    }

    fn overlaps(&mut self, sent: &Sent<'_>, settings: Settings) {
        let points = [
            (Point::BeforeClaim, "before-claim"),
            (Point::AfterClaim, "after-claim"),
            (Point::AfterResponse, "after-response"),
        ];
        for (point, word) in points {
            let name = format!("lease lost {word} {}", sent.number);
            self.add(Group::Overlap, settings, Kind::Late(point, sent.number), name, Some(sent.effect));
        }
    }

    fn troubles(&mut self, sent: &Sent<'_>, settings: Settings) {
        let Some(target) = &sent.target else { return };
        for (trouble, word) in Trouble::ALL {
            let settings = Settings { short_sends: trouble.is_slow(), ..settings };
            let name = format!("{word} {}", sent.number);
            self.add(Group::Answers, settings, Kind::Trouble(trouble, target.clone()), name, Some(sent.effect));
        }
    }

    fn orders(&mut self, counted: &Counted, settings: Settings) {
        for group in counted.groups() {
            let orders = orders(group);
            let all: usize = (1..=group.len()).product::<usize>() - 1;
            if all > orders.len() {
                self.left_out.push(format!(
                    "{} orders of {} effects under way at once",
                    all - orders.len(),
                    group.len()
                ));
            }
            for order in orders {
                let name = format!("claimed in the order {order:?}");
                self.add(Group::Order, settings, Kind::Reorder(order), name, None);
            }
        }
    }
}

fn sends(base: &Evidence) -> Vec<Sent<'_>> {
    let mut found: Vec<Sent<'_>> = Vec::new();
    for send in &base.sends {
        let Some(effect) = base.effect(&send.effect) else { continue };
        let origin = origin_of(&effect.url).filter(|_| effect.url.starts_with("http"));
        let target = origin.map(|origin| {
            let before = found.iter().filter(|sent| origin_of(&sent.effect.url).as_ref() == Some(&origin)).count();
            Target { url: effect.url.clone(), place: before + 1 }
        });
        found.push(Sent { number: found.len() + 1, effect, target });
    }
    found
}

/// Other orders of a group: every neighbour swapped, and all of it turned round; no more than so many.
fn orders(group: &[usize]) -> Vec<Vec<usize>> {
    let mut orders: Vec<Vec<usize>> = vec![group.iter().rev().copied().collect()];
    for at in 1..group.len() {
        let mut order = group.to_vec();
        order.swap(at - 1, at);
        if !orders.contains(&order) {
            orders.push(order);
        }
        let mut turned = group.to_vec();
        turned.rotate_left(at);
        if !orders.contains(&turned) {
            orders.push(turned);
        }
    }
    orders.retain(|order| order != group);
    orders.truncate(MOST_ORDERS);
    orders
}

#[cfg(test)]
mod tests {
    use super::super::evidence::Send;
    use super::*;

    fn evidence() -> Evidence {
        let effect = |id: &str, method: &str, url: &str| Effect {
            id: id.to_owned(),
            keying: "named".to_owned(),
            identity: id.to_owned(),
            state: "completed".to_owned(),
            provider: "stripe".to_owned(),
            method: method.to_owned(),
            url: url.to_owned(),
            digest: Vec::new(),
            key: None,
            status: Some(201),
            doubled: false,
        };
        let effects = vec![
            effect("a", "POST", "https://one.test/a"),
            effect("b", "POST", "https://two.test/b"),
            effect("c", "POST", "https://one.test/c"),
            effect("d", "WRITE", "file:///grant/d"),
        ];
        let sends = effects.iter().map(|effect| Send {
            effect: effect.id.clone(),
            attempt: 1,
            result: "answered".to_owned(),
            status: Some(201),
            started_at: chrono::Utc::now(),
        });
        Evidence { sends: sends.collect(), effects, ..Evidence::default() }
    }

    #[test]
    fn a_send_is_counted_at_its_provider() {
        let base = evidence();
        let places: Vec<_> = sends(&base).iter().map(|sent| sent.target.as_ref().map(|target| target.place)).collect();
        assert_eq!(places, [Some(1), Some(1), Some(2), None]);
    }

    #[test]
    fn each_send_meets_each_death_and_each_trouble() {
        let all = Cases::of(&evidence(), &Counted::default(), false, |_| true).all;
        let of = |group| all.iter().filter(|case| case.group == group).count();
        assert_eq!((of(Group::Crash), of(Group::Overlap), of(Group::Answers)), (3 * 6 + 5 + 2, 4 * 3 + 1, 3 * 7));
        let mut names: Vec<_> = all.iter().map(|case| &case.name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all.len(), "each has a name of its own");
        assert!(Cases::of(&evidence(), &Counted::default(), true, |group| group == Group::Order).all.is_empty());
    }

    #[test]
    fn two_effects_have_one_other_order_and_many_are_bounded() {
        assert_eq!(orders(&[1, 2]), [[2, 1]]);
        assert_eq!(orders(&[1, 2, 3, 4, 5, 6]).len(), MOST_ORDERS);
        assert!(orders(&[1, 2, 3]).iter().all(|order| *order != [1, 2, 3]));
    }
}
