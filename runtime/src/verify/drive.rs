//! One case from its database to its evidence: providers are told what to do, a first worker comes as far as the case lets it,
//! a second one goes on. Nothing is judged here.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use deedbox_books::{Behaviour, Books};

use super::Error;
use super::actor::{Actor, Goal, Role};
use super::cases::{Case, Kind, Target, Trouble, Where};
use super::evidence::Evidence;
use super::points::{Count, Counted, Hold, Order};
use super::providers::Providers;
use super::stage::{RUN, Stage};
use crate::config::Config;
use crate::probe::{self, Probe};

/// Pause between two looks at whether a worker is where the case wants it.
const LOOK: Duration = Duration::from_millis(5);

/// A case as it was played.
#[derive(Debug)]
pub struct Played {
    pub evidence: Evidence,
    pub counted: Counted,
    /// The first worker came to the place at which something was to happen to it.
    pub happened: bool,
    pub took: Duration,
}

/// Plays a case. `books`: a directory for the providers' books, which go on where they are there already; none: one of its own.
pub async fn play(stage: &Stage, case: &Case, books: Option<PathBuf>) -> Result<Played, Error> {
    let begun = Instant::now();
    let dir = stage.plan().dir.join(format!("case-{}", case.number));
    std::fs::create_dir_all(&dir)?;
    let url = stage.database(case.number).await?;
    let books = books.unwrap_or_else(|| dir.join("books"));
    let played = async {
        let providers = Providers::start(&books, &stage.stand_ins, case.settings.keyless, stage.plan().live).await?;
        let config = stage.config(case.settings, &dir.join("files"))?;
        let scene = Scene { stage, case, url: &url, config, providers: providers.clone() };
        let acted = scene.act().await;
        let evidence = Evidence::gather(&url, &providers, &dir.join("files")).await;
        drop(scene);
        providers.end().await;
        let (counted, happened) = acted?;
        Ok(Played { evidence: evidence?, counted, happened, took: begun.elapsed() })
    };
    let played = played.await;
    stage.remove(case.number).await;
    played
}

struct Scene<'a> {
    stage: &'a Stage,
    case: &'a Case,
    url: &'a str,
    config: Config,
    providers: Arc<Providers>,
}

impl Scene<'_> {
    async fn act(&self) -> Result<(Counted, bool), Error> {
        self.stage.start(self.url, self.case.settings).await?;
        match &self.case.kind {
            Kind::Undisturbed => {
                let count = Arc::new(Count::default());
                self.finish(count.clone()).await?;
                Ok((count.counted(), true))
            }
            Kind::Die(Where::Probe(point, nth)) => {
                let hold = Arc::new(Hold::new(*point, *nth));
                let first = self.actor("one", hold.clone(), Goal::OneAttempt)?;
                let happened = self.until(&first, async || hold.reached.is_cancelled()).await?;
                self.die(first, happened).await
            }
            Kind::Die(Where::Send(target)) => self.die_at(target, Behaviour::HoldBeforeApply).await,
            Kind::Die(Where::Apply(target)) => self.die_at(target, Behaviour::HoldAfterApply).await,
            Kind::Reorder(order) => {
                let probe = Arc::new(Order::new(order.clone()));
                let first = self.actor("one", probe.clone(), Goal::OneAttempt)?;
                let happened = self.until(&first, async || probe.reached.is_cancelled()).await?;
                self.die(first, happened).await
            }
            Kind::Late(point, nth) => self.be_late(Hold::new(*point, *nth)).await,
            Kind::Trouble(trouble, target) => {
                self.script(target, behaviour(*trouble)).await?;
                self.finish(probe::none()).await?;
                Ok((Counted::default(), true))
            }
        }
    }

    /// The first worker's lease is over while it stands at its point; it wakes when another has done everything.
    async fn be_late(&self, hold: Hold) -> Result<(Counted, bool), Error> {
        let hold = Arc::new(hold);
        let first = self.actor("one", hold.clone(), Goal::OneAttempt)?;
        let happened = self.until(&first, async || hold.reached.is_cancelled()).await?;
        if happened {
            self.stage.end_lease(self.url).await?;
            self.finish(probe::none()).await?;
            first.is_late();
        }
        hold.go.cancel();
        first.end(self.stage.patience()).await?;
        // What the first one learned late may settle what the run waits for.
        self.finish(probe::none()).await?;
        Ok((Counted::default(), happened))
    }

    async fn die_at(&self, target: &Target, behaviour: Behaviour) -> Result<(Counted, bool), Error> {
        let applied = behaviour == Behaviour::HoldAfterApply;
        self.script(target, behaviour).await?;
        let first = self.actor("one", probe::none(), Goal::OneAttempt)?;
        let books = self.books(target)?;
        let happened = self.until(&first, async || has_come(books, target.place, applied).await).await?;
        self.die(first, happened).await
    }

    /// Kills the first worker and lets another go on.
    async fn die(&self, first: Actor, happened: bool) -> Result<(Counted, bool), Error> {
        if happened {
            first.kill().await?;
            self.stage.end_lease(self.url).await?;
        } else {
            first.end(self.stage.patience()).await?;
        }
        self.finish(probe::none()).await?;
        Ok((Counted::default(), happened))
    }

    /// A worker does all that is left.
    async fn finish(&self, probe: Arc<dyn Probe>) -> Result<(), Error> {
        self.actor("two", probe, Goal::Settled(RUN))?.end(self.stage.patience()).await
    }

    fn actor(&self, name: &str, probe: Arc<dyn Probe>, goal: Goal) -> Result<Actor, Error> {
        let settings = self.stage.settings(self.url, &self.config, name)?;
        let (world, within) = (self.providers.clone(), self.stage.patience());
        Ok(Actor::start(Role { settings, world, probe, goal, within }))
    }

    /// Waits until it is so; false when the worker ended before.
    async fn until(&self, actor: &Actor, so: impl AsyncFn() -> bool) -> Result<bool, Error> {
        let give_up = Instant::now() + self.stage.patience();
        loop {
            if so().await {
                return Ok(true);
            }
            if actor.has_ended() {
                return Ok(false);
            }
            if Instant::now() > give_up {
                return Err(Error::Actor("it did not come to the point of its death".to_owned()));
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    async fn script(&self, target: &Target, behaviour: Behaviour) -> Result<(), Error> {
        let mut script = vec![Behaviour::Normal; target.place - 1];
        script.push(behaviour);
        Ok(self.books(target)?.script(&script).await?)
    }

    fn books(&self, target: &Target) -> Result<&Books, Error> {
        self.providers.at(&target.url).ok_or_else(|| Error::Provider(format!("nobody stands for {}", target.url)))
    }
}

/// Whether the request of that place is at the provider, or applied by it.
async fn has_come(books: &Books, place: usize, applied: bool) -> bool {
    let come = if applied {
        books.applied().await.map(|applied| applied.len())
    } else {
        let changes = |arrivals: Vec<deedbox_books::Arrival>| {
            arrivals.iter().filter(|it| !matches!(it.method.as_str(), "GET" | "HEAD" | "OPTIONS")).count()
        };
        books.arrivals().await.map(changes)
    };
    come.is_ok_and(|come| come >= place)
}

fn behaviour(trouble: Trouble) -> Behaviour {
    let early = |status| Behaviour::StatusBeforeApply { status, retry_after: None, body: None };
    match trouble {
        Trouble::SlowBeforeApply => Behaviour::HoldBeforeApply,
        Trouble::SlowAfterApply => Behaviour::HoldAfterApply,
        Trouble::TooMany => early(429),
        Trouble::BrokenBeforeApply => early(500),
        Trouble::BrokenAfterApply => Behaviour::StatusAfterApply { status: 500, keep: false },
        Trouble::CutAfterApply => Behaviour::CutAfterApply,
        Trouble::Rejected => Behaviour::StatusBeforeApply {
            status: 402,
            retry_after: None,
            body: Some(r#"{"error":{"type":"card_error","code":"card_declined"}}"#.to_owned()),
        },
    }
}
