//! The simulated providers of one case, each with books of its own on a loopback port, and the closed world that leads the
//! calls of guests to them.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use deedbox_books::{Books, Convention, Options, Provider};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Error;
use crate::gateway::{ClosedWorld, Lead};
use crate::policy::Origin;

/// Who stands for an origin, and how it behaves.
#[derive(Clone, Debug)]
pub struct StandIn {
    pub origin: Origin,
    pub profile: String,
    pub convention: Convention,
}

/// The running providers of a case.
#[derive(Debug)]
pub struct Providers {
    places: Vec<Place>,
    live: bool,
    stop: CancellationToken,
    serving: TaskTracker,
}

#[derive(Debug)]
struct Place {
    origin: Origin,
    books: Books,
}

impl Providers {
    /// Starts one for each origin, with its books below a directory, which go on where they are there already.
    pub async fn start(dir: &Path, stand_ins: &[StandIn], keyless: bool, live: bool) -> Result<Arc<Self>, Error> {
        let (stop, serving) = (CancellationToken::new(), TaskTracker::new());
        let mut places = Vec::new();
        for (number, stand_in) in stand_ins.iter().enumerate() {
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            let address: SocketAddr = listener.local_addr()?;
            let options = Options { keyless, convention: Some(stand_in.convention.clone()) };
            let (dir, ended) = (dir.join(number.to_string()), stop.clone().cancelled_owned());
            serving.spawn(async move {
                if let Err(error) = Provider::serve(listener, dir, options, ended).await {
                    tracing::error!(%error, "a simulated provider ended");
                }
            });
            places.push(Place { origin: stand_in.origin.clone(), books: Books { address } });
        }
        serving.close();
        Ok(Arc::new(Self { places, live, stop, serving }))
    }

    pub fn all(&self) -> impl Iterator<Item = (&Origin, &Books)> {
        self.places.iter().map(|place| (&place.origin, &place.books))
    }

    /// The books of the provider at an address.
    pub fn at(&self, url: &str) -> Option<&Books> {
        let origin = origin_of(url)?;
        self.all().find(|(own, _)| **own == origin).map(|(_, books)| books)
    }

    /// Stops them and waits for the ends of their books.
    pub async fn end(&self) {
        self.stop.cancel();
        self.serving.wait().await;
    }
}

impl ClosedWorld for Providers {
    fn lead(&self, origin: &Origin) -> Lead {
        match self.all().find(|(own, _)| *own == origin) {
            Some((_, books)) => Lead::To(books.address),
            None if self.live => Lead::Outside,
            None => Lead::Nowhere,
        }
    }
}

/// The origin of an address that the ledger names.
pub fn origin_of(url: &str) -> Option<Origin> {
    let url = url::Url::parse(url).ok()?;
    Origin::parse(&url.origin().ascii_serialization()).ok()
}
