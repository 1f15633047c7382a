//! The decisions about an effect, each tried over all of its inputs against the tables of the contract. The tables are
//! written here from its text, never from the code.

use deedbox::effect::{
    After, Event, Found, Holder, Learned, OnUnknown, Reading, Refused, Resend, Rules, State, Step, Verdict, learned,
    meet, repeats, settle, transition, verdict,
};

use State::{Claimed, Completed, Escaped, Released};

const STATES: [Option<State>; 5] = [None, Some(Claimed), Some(Completed), Some(Released), Some(Escaped)];
const RESENDS: [Resend; 3] = [Resend::Idempotent, Resend::Keyed, Resend::Unsafe];
const CHOICES: [OnUnknown; 3] = [OnUnknown::Ask, OnUnknown::AtMostOnce, OnUnknown::AtLeastOnce];
const VERDICTS: [Verdict; 3] = [Verdict::SendAgain, Verdict::AtMostOnce, Verdict::Ask];
const HOLDERS: [Holder; 3] = [Holder::Own, Holder::Alive, Holder::Gone];

const ONCE: Event = Event::LateProof { repeated: false };
const TWICE: Event = Event::LateProof { repeated: true };

const EVENTS: [Event; 10] = [
    Event::Claim,
    Event::Answer,
    Event::NotApplied,
    Event::Resend,
    Event::Escape,
    ONCE,
    TWICE,
    Event::Happened,
    Event::DidNotHappen,
    Event::SendAgain,
];

/// From, event, to, doubled. Everything else is refused.
const TABLE: [(Option<State>, Event, State, bool); 17] = [
    (None, Event::Claim, Claimed, false),
    (Some(Released), Event::Claim, Claimed, false),
    (Some(Claimed), Event::Answer, Completed, false),
    (Some(Claimed), ONCE, Completed, false),
    (Some(Claimed), Event::NotApplied, Released, false),
    (Some(Claimed), Event::Resend, Claimed, false),
    (Some(Claimed), Event::Escape, Escaped, false),
    (Some(Escaped), Event::Happened, Completed, false),
    (Some(Escaped), ONCE, Completed, false),
    (Some(Escaped), Event::DidNotHappen, Released, false),
    (Some(Escaped), Event::SendAgain, Claimed, false),
    // Proof may come at any time after a release and a re-send: in whatever state it finds the effect.
    (Some(Claimed), TWICE, Completed, true),
    (Some(Completed), TWICE, Completed, true),
    (Some(Released), TWICE, Completed, true),
    (Some(Escaped), TWICE, Completed, true),
    // The other send was a repetition to the provider, or applied nothing: the proof stands, and it is no incident.
    (Some(Completed), ONCE, Completed, false),
    (Some(Released), ONCE, Completed, false),
];

#[test]
fn an_effect_changes_only_as_the_table_says() {
    for from in STATES {
        for event in EVENTS {
            let row = TABLE.iter().find(|(state, it, ..)| (*state, *it) == (from, event));
            let got = transition(from, event);
            match row {
                Some((_, _, state, doubled)) => {
                    let next = got.unwrap();
                    assert_eq!((next.state, next.doubled), (*state, *doubled), "{from:?} {event:?}");
                }
                None => assert_eq!(got, Err(Refused { from, event }), "{from:?} {event:?}"),
            }
        }
    }
}

#[test]
fn every_event_is_tried() {
    for event in EVENTS {
        // An event that is added to the code must be added to the table: this stops the build until then.
        match event {
            Event::Claim | Event::Answer | Event::NotApplied | Event::Resend | Event::Escape => {}
            Event::LateProof { repeated: _ } | Event::Happened | Event::DidNotHappen | Event::SendAgain => {}
        }
    }
}

#[test]
fn nothing_leads_out_of_completed() {
    for event in EVENTS {
        assert!(transition(Some(Completed), event).map_or(true, |next| next.state == Completed), "{event:?}");
    }
}

/// The first rule that fits: idempotent method, a key that is remembered, the choice.
#[test]
fn an_unknown_outcome_is_answered_by_the_first_rule_that_fits() {
    for (resend, remembered, choice) in unknowns() {
        let expected = if resend == Resend::Idempotent || (resend == Resend::Keyed && remembered) {
            Verdict::SendAgain
        } else {
            match choice {
                OnUnknown::AtLeastOnce => Verdict::SendAgain,
                OnUnknown::AtMostOnce => Verdict::AtMostOnce,
                OnUnknown::Ask => Verdict::Ask,
            }
        };
        let rules = rules(resend, remembered, choice);
        assert_eq!(verdict(&rules), expected, "{rules:?}");
        let asked =
            if expected == Verdict::SendAgain && choice != OnUnknown::AtLeastOnce { expected } else { Verdict::Ask };
        let asked =
            if resend == Resend::Idempotent || (resend == Resend::Keyed && remembered) { expected } else { asked };
        assert_eq!(
            verdict(&Rules { lookup: true, ..rules }),
            asked,
            "the provider is asked before any choice: {rules:?}"
        );
        let leave = Rules { send_again: true, lookup: true, ..rules };
        assert_eq!(verdict(&leave), Verdict::SendAgain, "a person said so: {rules:?}");
    }
    assert_eq!(OnUnknown::default(), OnUnknown::Ask, "nothing is picked silently");
}

/// F-B09. A late retry with a key that the provider may have forgotten is like one without a key.
#[test]
fn a_forgotten_key_is_no_key() {
    for choice in CHOICES {
        assert_eq!(verdict(&rules(Resend::Keyed, false, choice)), verdict(&rules(Resend::Unsafe, true, choice)));
    }
}

#[test]
fn a_second_send_repeats_unless_the_provider_takes_it_for_the_first() {
    for (resend, remembered, _) in unknowns() {
        let same = resend == Resend::Idempotent || (resend == Resend::Keyed && remembered);
        assert_eq!(repeats(resend, remembered), !same);
    }
}

#[test]
fn a_call_meets_a_known_effect_as_the_ledger_says() {
    let mut tried = 0;
    for found in all_found() {
        assert_eq!(meet(&found), expected_step(&found), "{found:?}");
        tried += 1;
    }
    assert_eq!(tried, 4 * 2 * 3 * 3 * 2 * 3 * 4);
}

#[test]
fn a_met_effect_is_never_sent_when_that_could_double_it() {
    for found in all_found() {
        let step = meet(&found);
        let sends = matches!(step, Step::Claim | Step::Resend);
        assert!(!sends || found.same_request, "another request under one identity: {found:?}");
        assert!(!sends || found.holder != Holder::Alive || found.state == Released, "held by another: {found:?}");
        assert!(!sends || !matches!(found.state, Completed | Escaped), "{found:?}");
        let rules = found.rules;
        let chosen = rules.send_again || (rules.on_unknown == OnUnknown::AtLeastOnce && !rules.lookup);
        let doubles = repeats(rules.resend, rules.key_remembered) && !chosen;
        assert!(step != Step::Resend || !doubles, "{found:?}");
    }
}

fn expected_step(found: &Found) -> Step {
    if !found.same_request {
        return Step::Mismatch;
    }
    match found.state {
        Completed => Step::Replay,
        Released => Step::Claim,
        Escaped if found.rules.on_unknown == OnUnknown::AtMostOnce && !found.rules.lookup => Step::Tell,
        Escaped => Step::Wait,
        Claimed if found.holder == Holder::Alive => Step::InFlight,
        Claimed => match verdict(&found.rules) {
            Verdict::SendAgain => Step::Resend,
            Verdict::AtMostOnce => Step::EscapeAndTell,
            Verdict::Ask => Step::EscapeAndWait,
        },
    }
}

/// An answer is final whatever came before. A send that applied nothing frees the effect only when it is the only one.
/// All else leaves a question, and the verdict answers it.
#[test]
fn a_send_settles_its_effect_as_the_ledger_says() {
    for learned in [Learned::Answer, Learned::NotApplied, Learned::InFlight, Learned::Unknown] {
        for earlier_unknown in [false, true] {
            for verdict in VERDICTS {
                let open = match verdict {
                    Verdict::SendAgain => (Claimed, After::Show),
                    Verdict::AtMostOnce => (Escaped, After::Tell),
                    Verdict::Ask => (Escaped, After::Wait),
                };
                let expected = match (learned, earlier_unknown) {
                    (Learned::Answer, _) => (Completed, After::Show),
                    (Learned::NotApplied, false) => (Released, After::Show),
                    _ => open,
                };
                assert_eq!(settle(learned, earlier_unknown, verdict), expected);
            }
        }
    }
}

#[test]
fn settling_only_makes_changes_that_the_table_allows() {
    for learned in [Learned::Answer, Learned::NotApplied, Learned::InFlight, Learned::Unknown] {
        for (earlier_unknown, verdict) in [false, true].into_iter().flat_map(|e| VERDICTS.map(|v| (e, v))) {
            let (state, _) = settle(learned, earlier_unknown, verdict);
            let step = TABLE.iter().any(|(from, _, to, doubled)| *from == Some(Claimed) && *to == state && !doubled);
            assert!(step, "{learned:?} leads to {state:?}");
        }
    }
}

#[test]
fn every_status_is_read_as_the_ledger_says() {
    for status in 100..=599 {
        let expected = match status {
            401 | 407 | 425 | 429 => Learned::NotApplied,
            408 => Learned::Unknown,
            200..=499 => Learned::Answer,
            _ => Learned::Unknown,
        };
        assert_eq!(learned(status, &Reading::default()), expected, "{status}");
    }
}

#[test]
fn a_profile_adds_statuses_that_mean_not_processed() {
    for named in 100..=599 {
        let not_processed = [named];
        let statuses = Reading { not_processed: &not_processed, ..Reading::default() };
        assert_eq!(learned(named, &statuses), Learned::NotApplied, "{named}");
        for status in [200, 403, 409, 500, 503] {
            if status != named {
                assert_eq!(learned(status, &statuses), learned(status, &Reading::default()), "{named}, {status}");
            }
        }
    }
}

/// F-B08. The provider's "in use right now" is never a final answer, whatever its status.
#[test]
fn in_flight_is_never_final() {
    for status in 100..=599 {
        let statuses = Reading { in_flight: true, already_done: true, mismatch: true, ..Reading::default() };
        assert_eq!(learned(status, &statuses), Learned::InFlight, "{status}");
    }
    for earlier_unknown in [false, true] {
        assert_eq!(settle(Learned::InFlight, earlier_unknown, Verdict::SendAgain), (Claimed, After::Show));
    }
}

/// F-B08, R-E10. To a first send a mismatch, or a thing that is there already, is final. To a second one the mismatch tells
/// nothing of the first, and the thing that is there proves it.
#[test]
fn a_second_send_reads_a_mismatch_and_an_already_done_in_the_light_of_the_first() {
    for status in [200, 400, 409, 412, 422] {
        for (mismatch, already_done) in [(true, false), (false, true), (true, true)] {
            let first = Reading { mismatch, already_done, ..Reading::default() };
            assert_eq!(learned(status, &first), Learned::Answer, "{status} {first:?}");
            let second = Reading { earlier_unknown: true, ..first };
            let expected = if already_done { Learned::Answer } else { Learned::Unknown };
            assert_eq!(learned(status, &second), expected, "{status} {second:?}");
        }
    }
}

#[test]
fn words_are_read_as_they_are_written() {
    for state in STATES.into_iter().flatten() {
        assert_eq!(state.as_str().parse::<State>().unwrap(), state);
        assert_eq!(serde_json::to_value(state).unwrap(), state.as_str());
    }
    for resend in RESENDS {
        assert_eq!(resend.as_str().parse::<Resend>().unwrap(), resend);
        assert_eq!(serde_json::to_value(resend).unwrap(), resend.as_str());
    }
    for choice in CHOICES {
        assert_eq!(choice.as_str().parse::<OnUnknown>().unwrap(), choice);
        assert_eq!(serde_json::to_value(choice).unwrap(), choice.as_str());
    }
    for word in ["", "Claimed", "claimed ", "done"] {
        assert!(word.parse::<State>().is_err());
    }
}

fn unknowns() -> impl Iterator<Item = (Resend, bool, OnUnknown)> {
    let with_memory = RESENDS.into_iter().flat_map(|resend| [(resend, false), (resend, true)]);
    with_memory.flat_map(|(resend, remembered)| CHOICES.map(|choice| (resend, remembered, choice)))
}

fn all_found() -> impl Iterator<Item = Found> {
    let states = STATES.into_iter().flatten().flat_map(|state| HOLDERS.map(|holder| (state, holder)));
    let requests = states.flat_map(|(state, holder)| [true, false].map(|same| (state, holder, same)));
    requests.flat_map(|(state, holder, same_request)| {
        let all = unknowns().flat_map(|(resend, remembered, choice)| {
            [(false, false), (false, true), (true, false), (true, true)].map(|(lookup, send_again)| Rules {
                lookup,
                send_again,
                ..rules(resend, remembered, choice)
            })
        });
        all.map(move |rules| Found { state, same_request, holder, rules })
    })
}

fn rules(resend: Resend, key_remembered: bool, on_unknown: OnUnknown) -> Rules {
    Rules { resend, key_remembered, lookup: false, on_unknown, send_again: false }
}
