//! The probes of a verification: one that finds which effects are under way at once, one that holds an attempt at the so-manieth
//! time that a point is reached, and one that gives effects under way at once another order.

use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::probe::{Point, Probe};

/// How long the first look waits at each effect for others that come beside it.
const BESIDE: Duration = Duration::from_millis(40);
/// How long an effect waits for its turn; one before it may have failed.
const TURN: Duration = Duration::from_millis(800);

type Reached<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// Finds the effects that are under way at once.
#[derive(Debug, Default)]
pub struct Count(Mutex<Counted>);

/// What was counted.
#[derive(Clone, Debug, Default)]
pub struct Counted {
    /// Calls that were about to be claimed.
    seen: usize,
    /// Their numbers, from 1; those that were about to be claimed at the same time together.
    groups: Vec<Vec<usize>>,
    waiting: usize,
}

impl Counted {
    pub fn groups(&self) -> impl Iterator<Item = &Vec<usize>> {
        self.groups.iter().filter(|group| group.len() > 1)
    }

    fn come(&mut self) {
        self.seen += 1;
        self.waiting += 1;
        let (number, beside) = (self.seen, self.waiting > 1);
        match self.groups.last_mut() {
            Some(group) if beside => group.push(number),
            _ => self.groups.push(vec![number]),
        }
    }
}

impl Count {
    pub fn counted(&self) -> Counted {
        lock(&self.0).clone()
    }
}

impl Probe for Count {
    fn reach(&self, point: Point) -> Reached<'_> {
        Box::pin(async move {
            if point == Point::BeforeClaim {
                lock(&self.0).come();
                tokio::time::sleep(BESIDE).await;
                lock(&self.0).waiting -= 1;
            }
        })
    }
}

/// Holds an attempt at a point, the so-manieth time that it is reached.
#[derive(Debug)]
pub struct Hold {
    at: Point,
    nth: usize,
    seen: Mutex<usize>,
    pub reached: CancellationToken,
    pub go: CancellationToken,
}

impl Hold {
    pub fn new(at: Point, nth: usize) -> Self {
        Self { at, nth, seen: Mutex::default(), reached: CancellationToken::new(), go: CancellationToken::new() }
    }
}

impl Probe for Hold {
    fn reach(&self, point: Point) -> Reached<'_> {
        Box::pin(async move {
            let here = point == self.at && {
                let mut seen = lock(&self.seen);
                *seen += 1;
                *seen == self.nth
            };
            if here {
                self.reached.cancel();
                self.go.cancelled().await;
            }
        })
    }
}

/// Lets calls that are under way at once be claimed in another order, one after the other, and holds everything once the first
/// of them is settled.
#[derive(Debug)]
pub struct Order {
    /// Numbers of the calls, in the order that is wanted.
    order: Vec<usize>,
    seen: Mutex<usize>,
    come: watch::Sender<usize>,
    pub reached: CancellationToken,
}

impl Order {
    pub fn new(order: Vec<usize>) -> Self {
        Self { order, seen: Mutex::default(), come: watch::Sender::new(0), reached: CancellationToken::new() }
    }

    async fn wait(&self, place: usize) {
        let mut come = self.come.subscribe();
        let all = self.order.len();
        let _ = tokio::time::timeout(TURN, come.wait_for(|come| *come >= all)).await;
        if place > 0 {
            // When the first has been settled, the worker dies; only where that never comes do the others go on.
            if tokio::time::timeout(TURN * 4, self.reached.cancelled()).await.is_ok() {
                std::future::pending::<()>().await;
            }
        }
    }
}

impl Probe for Order {
    fn reach(&self, point: Point) -> Reached<'_> {
        Box::pin(async move {
            match point {
                Point::BeforeClaim => {
                    let number = {
                        let mut seen = lock(&self.seen);
                        *seen += 1;
                        *seen
                    };
                    let Some(place) = self.order.iter().position(|own| *own == number) else { return };
                    self.come.send_modify(|come| *come += 1);
                    self.wait(place).await;
                }
                Point::AfterSettle if *self.come.borrow() >= self.order.len() => {
                    self.reached.cancel();
                    std::future::pending::<()>().await;
                }
                _ => {}
            }
        })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn calls_that_wait_together_are_a_group() {
        let count = Count::default();
        tokio::join!(count.reach(Point::BeforeClaim), count.reach(Point::BeforeClaim));
        count.reach(Point::BeforeClaim).await;
        let counted = count.counted();
        assert_eq!(counted.seen, 3);
        assert_eq!(counted.groups().collect::<Vec<_>>(), [&vec![1, 2]]);
    }

    #[test]
    fn only_the_nth_time_is_held() {
        let hold = Hold::new(Point::AfterClaim, 2);
        assert!(hold.reach(Point::BeforeClaim).now_or_never().is_some());
        assert!(hold.reach(Point::AfterClaim).now_or_never().is_some());
        assert!(hold.reach(Point::AfterClaim).now_or_never().is_none() && hold.reached.is_cancelled());
        assert!(hold.reach(Point::AfterClaim).now_or_never().is_some());
    }
}
