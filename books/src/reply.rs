//! How a reply goes over the wire, also the replies that are wrong on purpose. It must never look at the books.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Frame;
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};

use crate::answer::Answer;

/// Bytes per chunk of an endless body, one chunk every `ENDLESS_PAUSE`.
const ENDLESS_CHUNK: usize = 16 * 1024;
const ENDLESS_PAUSE: Duration = Duration::from_millis(5);
/// Announced beyond what is sent.
const LIE: usize = 1024;
/// Lets the sent part reach the client before the connection closes.
const LIE_PAUSE: Duration = Duration::from_millis(20);

pub(crate) type Body = UnsyncBoxBody<Bytes, Cut>;

/// Ends the connection without (the rest of) an answer.
#[derive(Debug, thiserror::Error)]
#[error("the connection was cut on purpose")]
pub(crate) struct Cut;

#[derive(Debug)]
pub(crate) enum Reply {
    Whole(Answer),
    /// 200 and chunks for as long as the client listens.
    Endless,
    /// The answer with a content-length that is too large, then the end of the connection.
    Short(Answer),
    /// The end of the connection.
    Cut,
}

impl Reply {
    pub fn into_response(self) -> Result<Response<Body>, Cut> {
        match self {
            Self::Whole(answer) => Ok(whole(answer)),
            Self::Endless => Ok(endless()),
            Self::Short(answer) => Ok(short(answer)),
            Self::Cut => Err(Cut),
        }
    }
}

fn whole(answer: Answer) -> Response<Body> {
    let body = Full::new(Bytes::from(answer.body)).map_err(|never: Infallible| match never {}).boxed_unsync();
    head(answer.status, &answer.headers, body)
}

fn endless() -> Response<Body> {
    let chunks = stream::unfold((), |()| async {
        tokio::time::sleep(ENDLESS_PAUSE).await;
        Some((Ok(Frame::data(Bytes::from_static(&[b' '; ENDLESS_CHUNK]))), ()))
    });
    let mut response = Response::new(StreamBody::new(chunks).boxed_unsync());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn short(answer: Answer) -> Response<Body> {
    let announced = answer.body.len() + LIE;
    let sent = Bytes::from(answer.body);
    let chunks = stream::unfold(Some(sent), |left| async move {
        match left {
            Some(sent) => Some((Ok(Frame::data(sent)), None)),
            None => {
                tokio::time::sleep(LIE_PAUSE).await;
                Some((Err(Cut), None))
            }
        }
    });
    let mut response = head(answer.status, &answer.headers, StreamBody::new(chunks).boxed_unsync());
    response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(announced));
    response
}

/// A header that HTTP does not allow is left out: only a scripted echo of odd bytes can bring one.
fn head(status: u16, headers: &[(String, String)], body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    for (name, value) in headers {
        if let (Ok(name), Ok(value)) =
            (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_bytes(value.as_bytes()))
        {
            response.headers_mut().append(name, value);
        }
    }
    response
}
