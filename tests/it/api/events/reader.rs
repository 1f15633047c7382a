//! A client of server-sent events that knows only what the standard says.

use serde_json::Value;

use super::SOON;
use crate::api::client::Client;

/// One event, as it was told.
#[derive(Clone, Debug)]
pub struct Seen {
    pub id: String,
    pub kind: String,
    pub body: Value,
}

/// An open stream.
pub struct Reader {
    answer: reqwest::Response,
    rest: String,
    /// The last id that was told, also one without an event.
    pub last: Option<String>,
}

impl Reader {
    /// Opens a stream, which must be given.
    pub async fn open(client: &Client, path: &str, last: Option<&str>) -> Self {
        let request = client.request(reqwest::Method::GET, path).header("accept", "text/event-stream");
        let request = last.into_iter().fold(request, |request, last| request.header("last-event-id", last));
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), 200, "{path}");
        assert_eq!(answer.headers()["content-type"], "text/event-stream");
        assert_eq!(answer.headers()["cache-control"], "no-store");
        Self { answer, rest: String::new(), last: last.map(str::to_owned) }
    }

    /// The next lines up to an empty one; none at the end of the stream.
    pub async fn block(&mut self) -> Option<String> {
        loop {
            if let Some((block, rest)) = self.rest.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.rest = rest;
                return Some(block);
            }
            let piece = tokio::time::timeout(SOON, self.answer.chunk()).await.expect("the stream says nothing");
            match piece.unwrap() {
                Some(piece) => self.rest.push_str(std::str::from_utf8(&piece).unwrap()),
                None => {
                    assert_eq!(self.rest, "", "it ended within an event");
                    return None;
                }
            }
        }
    }

    /// The next event; none at the end of the stream.
    pub async fn next(&mut self) -> Option<Seen> {
        loop {
            let block = self.block().await?;
            let field = |name: &str| {
                let values = block.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
                values.map(str::to_owned).next()
            };
            if let Some(id) = field("id") {
                self.last = Some(id);
            }
            if let Some(data) = field("data") {
                assert_eq!(block.lines().count(), 3, "{block}");
                let (id, kind) = (field("id").unwrap(), field("event").unwrap());
                return Some(Seen { id, kind, body: serde_json::from_str(&data).unwrap() });
            }
        }
    }

    /// The next event, which must come.
    pub async fn one(&mut self) -> Seen {
        self.next().await.expect("the stream has ended")
    }

    /// All events up to the end of the stream.
    pub async fn rest(mut self) -> Vec<Seen> {
        let mut all = Vec::new();
        while let Some(event) = self.next().await {
            all.push(event);
        }
        all
    }
}
