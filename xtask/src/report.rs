//! What the user sees: one line per step, with its time, and a table at the end.
//!
//! It never decides whether to go on.

use std::time::{Duration, Instant};

use anyhow::Result;

/// How a step ended.
pub enum Done {
    /// Nothing had to be done; the text says what was found.
    AlreadyThere(String),
    /// Work was done; the word says which ("built", "installed").
    Made(&'static str),
}

/// Runs one step of the set-up and prints how it ended and how long it took.
pub fn step<T>(name: &str, work: impl FnOnce() -> Result<(T, Done)>) -> Result<T> {
    let start = Instant::now();
    let (value, done) = work()?;
    match done {
        Done::AlreadyThere(what) => println!("setup: {name} … already there ({what})"),
        Done::Made(verb) => println!("setup: {name} … {verb} in {}", in_words(start.elapsed())),
    }
    Ok(value)
}

/// Says what a long step is doing now.
pub fn progress(name: &str, doing: &str) {
    println!("setup: {name} … {doing}");
}

/// The stages of one command, in order.
#[derive(Default)]
pub struct Stages {
    finished: Vec<(&'static str, &'static str, Duration)>,
}

impl Stages {
    /// Runs a stage, prints its time and remembers it for the table.
    pub fn run<T>(&mut self, name: &'static str, work: impl FnOnce() -> Result<T>) -> Result<T> {
        println!("\n== {name}");
        let start = Instant::now();
        let result = work();
        let took = start.elapsed();
        let outcome = if result.is_ok() { "ok" } else { "FAILED" };
        println!("== {name}: {outcome} in {}", in_words(took));
        self.finished.push((name, outcome, took));
        result
    }

    pub fn skip(&mut self, name: &'static str, why: &str) {
        println!("\n== {name}: skipped, {why}");
        self.finished.push((name, "skipped", Duration::ZERO));
    }

    pub fn print_table(&self) {
        println!("\n{:<10} {:<8} {:>10}", "stage", "result", "time");
        for (name, outcome, took) in &self.finished {
            println!("{name:<10} {outcome:<8} {:>10}", in_words(*took));
        }
        let total = self.finished.iter().map(|(_, _, took)| *took).sum();
        println!("{:<10} {:<8} {:>10}", "", "", in_words(total));
    }
}

/// A time for people.
pub fn in_words(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 10.0 {
        return format!("{seconds:.1} s");
    }
    match time.as_secs() {
        short @ ..120 => format!("{short} s"),
        long => format!("{} min {:02} s", long / 60, long % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_readable_at_every_size() {
        assert_eq!(in_words(Duration::from_millis(140)), "0.1 s");
        assert_eq!(in_words(Duration::from_secs(74)), "74 s");
        assert_eq!(in_words(Duration::from_secs(185)), "3 min 05 s");
    }
}
