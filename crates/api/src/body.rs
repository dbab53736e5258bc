//! Reading a request's body: bounded in size and time, and drained when too large.
//!
//! A client that is still writing does not read; closing the connection on it loses the answer. So what exceeds the
//! bound is read on and thrown away, up to a bound of its own, before the 413.

use std::time::Duration;

use axum::{
    body::{Body, BodyDataStream},
    extract::Request,
    http::{HeaderMap, header},
};
use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use serde_json::{Map, Value};

use crate::error::ApiError;

/// The largest body of calls that carry no message.
pub(crate) const SMALL_BYTES_MAX: usize = 1024 * 1024;
/// The longest a body may take to arrive.
const READ_S_MAX: Duration = Duration::from_secs(120);
/// How much of a body that is too large is read before the answer, and for how long.
const DRAIN_BYTES_MAX: usize = 128 * 1024 * 1024;
const DRAIN_S_MAX: Duration = Duration::from_secs(10);
/// No more than this is reserved on the word of a Content-Length.
const RESERVE_BYTES_MAX: usize = 1024 * 1024;

/// The whole body, or 413 when it has more than `bytes_max`.
pub(crate) async fn read(headers: &HeaderMap, body: Body, bytes_max: usize) -> Result<Bytes, ApiError> {
    let announced =
        headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    let mut stream = body.into_data_stream();
    if announced.is_some_and(|length| length > bytes_max) {
        // Who asks first has sent nothing yet, and will not.
        if !headers.contains_key(header::EXPECT) {
            drain(stream).await;
        }
        return Err(too_large(bytes_max));
    }
    match tokio::time::timeout(READ_S_MAX, collect(&mut stream, announced, bytes_max)).await {
        Ok(Ok(Some(bytes))) => Ok(bytes),
        Ok(Ok(None)) => {
            drain(stream).await;
            Err(too_large(bytes_max))
        }
        Ok(Err(_)) => Err(ApiError::malformed("the body ended before it was complete")),
        Err(_) => {
            Err(ApiError::timeout(format!("the body did not arrive within {} s", READ_S_MAX.as_secs())))
        }
    }
}

/// All of it, or `None` as soon as it exceeds the bound. A body that comes in one piece is not copied.
async fn collect(
    stream: &mut BodyDataStream,
    announced: Option<usize>,
    bytes_max: usize,
) -> Result<Option<Bytes>, axum::Error> {
    let Some(first) = stream.next().await.transpose()? else {
        return Ok(Some(Bytes::new()));
    };
    if first.len() > bytes_max {
        return Ok(None);
    }
    let Some(mut piece) = stream.next().await.transpose()? else {
        return Ok(Some(first));
    };
    let mut whole = BytesMut::with_capacity(announced.unwrap_or(0).min(RESERVE_BYTES_MAX));
    whole.extend_from_slice(&first);
    drop(first);
    loop {
        if whole.len() + piece.len() > bytes_max {
            return Ok(None);
        }
        whole.extend_from_slice(&piece);
        match stream.next().await.transpose()? {
            Some(next) => piece = next,
            None => return Ok(Some(whole.freeze())),
        }
    }
}

async fn drain(mut stream: BodyDataStream) {
    let discard = async {
        let mut discarded = 0;
        while let Some(Ok(piece)) = stream.next().await {
            discarded += piece.len();
            if discarded > DRAIN_BYTES_MAX {
                break;
            }
        }
    };
    // In time or not, the answer is the same.
    let _ended_in_time = tokio::time::timeout(DRAIN_S_MAX, discard).await.is_ok();
}

fn too_large(bytes_max: usize) -> ApiError {
    ApiError::too_large(format!("the body has more than {bytes_max} bytes, the most this call takes"))
}

/// Refuses a body that says it is something other than JSON. One that says nothing is taken as JSON, and so is one that
/// says it is a form: that is what curl says of every body unless it is told otherwise. What is in it must be JSON anyway.
pub(crate) fn expect_json(headers: &HeaderMap) -> Result<(), ApiError> {
    let Some(value) = headers.get(header::CONTENT_TYPE) else {
        return Ok(());
    };
    let kind = essence(value.as_bytes());
    let is_json = kind.eq_ignore_ascii_case(b"application/json")
        || kind.eq_ignore_ascii_case(b"application/x-www-form-urlencoded")
        || kind.len() > 5 && kind[kind.len() - 5..].eq_ignore_ascii_case(b"+json");
    match is_json {
        true => Ok(()),
        false => Err(ApiError::media_type(format!(
            "the content type is `{}`; this call takes application/json (a ready-made mail is message/rfc822, for /v1/messages)",
            String::from_utf8_lossy(kind).chars().take(100).collect::<String>()
        ))),
    }
}

/// Whether a body says that it is a mail.
pub(crate) fn is_mail(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).map(|value| essence(value.as_bytes()));
    kind.is_some_and(|kind| kind.eq_ignore_ascii_case(b"message/rfc822"))
}

/// A media type without its parameters.
pub(crate) fn essence(value: &[u8]) -> &[u8] {
    value.split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii()
}

/// Whether a media type is one of the names of JSON lines.
pub(crate) fn is_json_lines(kind: &[u8]) -> bool {
    let names =
        ["application/x-ndjson", "application/jsonl", "application/jsonlines", "application/x-jsonlines"];
    names.iter().any(|name| kind.eq_ignore_ascii_case(name.as_bytes()))
}

/// A small JSON object.
pub(crate) async fn json_object(request: Request) -> Result<Map<String, Value>, ApiError> {
    json_object_within(request, SMALL_BYTES_MAX).await
}

/// A JSON object of at most so many bytes.
pub(crate) async fn json_object_within(
    request: Request,
    bytes_max: usize,
) -> Result<Map<String, Value>, ApiError> {
    let (parts, body) = request.into_parts();
    expect_json(&parts.headers)?;
    let bytes = read(&parts.headers, body, bytes_max).await?;
    match serde_json::from_slice(&bytes) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(ApiError::malformed("the body must be a JSON object")),
        Err(error) => Err(ApiError::malformed(format!("the body is not JSON: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(sizes: &'static [usize]) -> Body {
        Body::from_stream(futures::stream::iter(
            sizes.iter().map(|&size| Ok::<_, std::io::Error>(Bytes::from(vec![b'x'; size]))),
        ))
    }

    #[tokio::test]
    async fn a_body_may_fill_its_bound_and_not_a_byte_more() {
        let none = HeaderMap::new();
        assert_eq!(read(&none, pieces(&[4, 3, 3]), 10).await.unwrap().len(), 10);
        assert_eq!(read(&none, pieces(&[10]), 10).await.unwrap().len(), 10);
        assert_eq!(read(&none, Body::empty(), 10).await.unwrap().len(), 0);
        for sizes in [&[11][..], &[4, 3, 4], &[1, 11]] {
            assert!(read(&none, pieces(sizes), 10).await.is_err(), "{sizes:?}");
        }
    }

    #[tokio::test]
    async fn an_announced_excess_is_drained_unless_the_client_asked_first() {
        let polled = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let watched = |polled: std::sync::Arc<std::sync::atomic::AtomicUsize>| {
            Body::from_stream(futures::stream::iter(0..3).map(move |_| {
                polled.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                Ok::<_, std::io::Error>(Bytes::from_static(b"xxxx"))
            }))
        };
        let mut headers = HeaderMap::from_iter([(header::CONTENT_LENGTH, 12.into())]);
        assert!(read(&headers, watched(polled.clone()), 10).await.is_err());
        assert_eq!(polled.swap(0, std::sync::atomic::Ordering::Relaxed), 3);
        headers.insert(header::EXPECT, header::HeaderValue::from_static("100-continue"));
        assert!(read(&headers, watched(polled.clone()), 10).await.is_err());
        assert_eq!(polled.load(std::sync::atomic::Ordering::Relaxed), 0);
    }

    #[test]
    fn json_goes_by_several_names() {
        let of = |kind: &'static str| {
            expect_json(&HeaderMap::from_iter([(
                header::CONTENT_TYPE,
                header::HeaderValue::from_static(kind),
            )]))
        };
        let form = "application/x-www-form-urlencoded";
        for kind in ["application/json", "Application/JSON; charset=utf-8", "application/vnd.x+json", form] {
            assert!(of(kind).is_ok(), "{kind}");
        }
        for kind in ["text/plain", "message/rfc822", "multipart/form-data", ""] {
            assert!(of(kind).is_err(), "{kind}");
        }
        assert!(expect_json(&HeaderMap::new()).is_ok());
    }
}
