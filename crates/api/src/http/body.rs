//! Reading a request's body: bounded in size and time, and drained when it is too large.
//!
//! A client that is still writing does not read, and closing its connection would lose the answer. So a body
//! beyond the bound is read on and discarded, up to a second bound: before the 413, or after it if the head
//! already announces too much.

use std::time::Duration;

use axum::{
    body::{Body, BodyDataStream},
    extract::Request,
    http::{HeaderMap, header, request::Parts},
};
use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use postway_intake::{JsonBounds, JsonReadError, read_object, read_object_except};
use serde_json::{Map, Value, value::RawValue};

use crate::http::{
    body_budget::RequestShare,
    error::{ApiError, FieldError},
};

/// The media type of arbitrary bytes.
pub(crate) const OCTETS: &str = "application/octet-stream";
/// The largest body of a call that carries no message.
pub(crate) const SMALL_BYTES_MAX: usize = 1024 * 1024;
/// The most JSON values, nested ones included, of such a call: each value takes far more memory than its
/// text.
const VALUES_MAX: usize = 20_000;
/// The longest a body may take to arrive.
const READ_S_MAX: Duration = Duration::from_secs(120);
/// How much of a body that is too large is read before the answer, and for how long.
const DRAIN_BYTES_MAX: usize = 128 * 1024 * 1024;
const DRAIN_S_MAX: Duration = Duration::from_secs(10);
/// The most bytes that are reserved because a Content-Length announces them.
const RESERVE_BYTES_MAX: usize = 1024 * 1024;

/// The complete body. 413 if it is larger than `bytes_max`, 415 if it is compressed, 503 if the body budget
/// is used up.
pub(crate) async fn read(parts: &Parts, body: Body, bytes_max: usize) -> Result<Bytes, ApiError> {
    let (headers, share) = (&parts.headers, parts.extensions.get::<RequestShare>());
    expect_unpacked(headers)?;
    let announced =
        headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    let mut stream = body.into_data_stream();
    if announced.is_some_and(|length| length > bytes_max) {
        // The answer goes out before any of the body is read. A client that does not look for it goes on
        // writing, so its body is read and discarded for a while: closing at once would reset the connection
        // and lose the answer. A client that waits for `100 Continue` has sent nothing of its body, and will
        // not.
        if !headers.contains_key(header::EXPECT) {
            tokio::spawn(drain(stream));
        }
        return Err(too_large(bytes_max));
    }
    match tokio::time::timeout(READ_S_MAX, collect(&mut stream, announced, bytes_max, share)).await {
        Ok(Ok(BodyRead::Whole(bytes))) => Ok(bytes),
        Ok(Ok(BodyRead::TooLarge)) => {
            drain(stream).await;
            Err(too_large(bytes_max))
        }
        Ok(Ok(BodyRead::NoRoom)) => {
            if let Some(share) = share {
                share.release();
            }
            drain(stream).await;
            Err(ApiError::busy("too much is being handed over at once; nothing was done, try again"))
        }
        Ok(Err(_)) => Err(ApiError::malformed("the body ended before it was complete")),
        Err(_) => {
            Err(ApiError::timeout(format!("the body did not arrive within {} s", READ_S_MAX.as_secs())))
        }
    }
}

/// The result of reading a body.
enum BodyRead {
    Whole(Bytes),
    TooLarge,
    NoRoom,
}

/// Reads the complete body, unless it exceeds its own bound or the body budget. A body that arrives in one
/// piece is not copied.
async fn collect(
    stream: &mut BodyDataStream,
    announced: Option<usize>,
    bytes_max: usize,
    share: Option<&RequestShare>,
) -> Result<BodyRead, axum::Error> {
    let Some(first) = stream.next().await.transpose()? else {
        return Ok(BodyRead::Whole(Bytes::new()));
    };
    if first.len() > bytes_max {
        return Ok(BodyRead::TooLarge);
    }
    if share.is_some_and(|share| !share.cover(first.len())) {
        return Ok(BodyRead::NoRoom);
    }
    let Some(mut piece) = stream.next().await.transpose()? else {
        return Ok(BodyRead::Whole(first));
    };
    let mut whole = BytesMut::with_capacity(announced.unwrap_or(0).min(RESERVE_BYTES_MAX));
    whole.extend_from_slice(&first);
    drop(first);
    loop {
        let length = whole.len() + piece.len();
        if length > bytes_max {
            return Ok(BodyRead::TooLarge);
        }
        if share.is_some_and(|share| !share.cover(length)) {
            return Ok(BodyRead::NoRoom);
        }
        whole.extend_from_slice(&piece);
        match stream.next().await.transpose()? {
            Some(next) => piece = next,
            None => return Ok(BodyRead::Whole(whole.freeze())),
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
    // The answer is the same whether draining ended in time or not.
    let _ended_in_time = tokio::time::timeout(DRAIN_S_MAX, discard).await.is_ok();
}

fn too_large(bytes_max: usize) -> ApiError {
    ApiError::too_large(format!("the body has more than {bytes_max} bytes, the most this call takes"))
}

/// Refuses a body whose headers say that it is compressed.
fn expect_unpacked(headers: &HeaderMap) -> Result<(), ApiError> {
    let packed = headers
        .get_all(header::CONTENT_ENCODING)
        .iter()
        .find(|value| !value.as_bytes().trim_ascii().eq_ignore_ascii_case(b"identity") && !value.is_empty());
    match packed {
        None => Ok(()),
        Some(value) => Err(ApiError::media_type(format!(
            "the body is encoded as `{}`; send it as it is, without Content-Encoding",
            String::from_utf8_lossy(value.as_bytes()).chars().take(100).collect::<String>()
        ))),
    }
}

/// Refuses a body whose headers name a type other than JSON. No type counts as JSON, and so does a form: curl
/// labels every body as a form by default. The content must be JSON anyway.
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

/// Whether the headers say that the body is a mail.
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

/// A JSON object of at most `bytes_max` bytes.
pub(crate) async fn json_object_within(
    request: Request,
    bytes_max: usize,
) -> Result<Map<String, Value>, ApiError> {
    let (parts, body) = request.into_parts();
    object_within(&parts, body, bytes_max).await
}

/// A small JSON object, for a handler that also needs the request's head.
pub(crate) async fn json_of(parts: &Parts, body: Body) -> Result<Map<String, Value>, ApiError> {
    object_within(parts, body, SMALL_BYTES_MAX).await
}

async fn object_within(parts: &Parts, body: Body, bytes_max: usize) -> Result<Map<String, Value>, ApiError> {
    expect_json(&parts.headers)?;
    let bytes = read(parts, body, bytes_max).await?;
    let bounds = JsonBounds { values_max: VALUES_MAX, text_bytes_max: bytes_max };
    read_object(&bytes, bounds).map_err(unfit)
}

/// The JSON object of a body: its fields within the bounds of a small object, and beside them one field as
/// the raw text.
pub(crate) fn json_beside<'a>(
    bytes: &'a [u8],
    apart: &str,
    text_bytes_max: usize,
) -> Result<(Map<String, Value>, Option<&'a RawValue>), ApiError> {
    let bounds = JsonBounds { values_max: VALUES_MAX, text_bytes_max };
    let (fields, value) = read_object_except(bytes, Some(apart), bounds).map_err(unfit)?;
    Ok((fields, value.filter(|value| value.get() != "null")))
}

fn unfit(fault: JsonReadError) -> ApiError {
    match fault {
        JsonReadError::NotObject => ApiError::malformed("the body must be a JSON object"),
        JsonReadError::Malformed(error) => ApiError::malformed(format!("the body is not JSON: {error}")),
        JsonReadError::TooMuch(bounds) => ApiError::invalid(vec![FieldError::new(
            "",
            format!(
                "the body has more than {} values, or more than {} bytes of text besides a mail: send less",
                bounds.values_max, bounds.text_bytes_max
            ),
        )]),
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

    fn with(headers: HeaderMap) -> Parts {
        let (mut parts, ()) = axum::http::Request::new(()).into_parts();
        parts.headers = headers;
        parts
    }

    #[tokio::test]
    async fn a_body_may_fill_its_bound_and_not_a_byte_more() {
        let none = with(HeaderMap::new());
        assert_eq!(read(&none, pieces(&[4, 3, 3]), 10).await.unwrap().len(), 10);
        assert_eq!(read(&none, pieces(&[10]), 10).await.unwrap().len(), 10);
        assert_eq!(read(&none, Body::empty(), 10).await.unwrap().len(), 0);
        for sizes in [&[11][..], &[4, 3, 4], &[1, 11]] {
            assert!(read(&none, pieces(sizes), 10).await.is_err(), "{sizes:?}");
        }
    }

    #[tokio::test]
    async fn a_content_length_over_the_bound_is_drained_unless_the_client_waits_for_continue() {
        let polled = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let watched = |polled: std::sync::Arc<std::sync::atomic::AtomicUsize>| {
            Body::from_stream(futures::stream::iter(0..3).map(move |_| {
                polled.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                Ok::<_, std::io::Error>(Bytes::from_static(b"xxxx"))
            }))
        };
        let mut parts = with(HeaderMap::from_iter([(header::CONTENT_LENGTH, 12.into())]));
        assert!(read(&parts, watched(polled.clone()), 10).await.is_err());
        assert_eq!(polled.load(std::sync::atomic::Ordering::Relaxed), 0, "the answer comes first");
        while polled.load(std::sync::atomic::Ordering::Relaxed) < 3 {
            tokio::task::yield_now().await;
        }
        polled.store(0, std::sync::atomic::Ordering::Relaxed);
        parts.headers.insert(header::EXPECT, header::HeaderValue::from_static("100-continue"));
        assert!(read(&parts, watched(polled.clone()), 10).await.is_err());
        assert_eq!(polled.load(std::sync::atomic::Ordering::Relaxed), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_content_length_over_the_bound_is_refused_before_any_of_the_body_comes() {
        let parts = with(HeaderMap::from_iter([(header::CONTENT_LENGTH, 1_000_000_000_000_u64.into())]));
        let silent = Body::from_stream(futures::stream::pending::<Result<Bytes, std::io::Error>>());
        let began = tokio::time::Instant::now();
        let refused = read(&parts, silent, 10).await.unwrap_err();
        assert_eq!((refused.status().as_u16(), began.elapsed()), (413, Duration::ZERO));
    }

    #[tokio::test]
    async fn bodies_have_no_more_room_than_there_is_for_all_of_them() {
        const MANY: usize = 256 * 1024;
        let budget = crate::http::body_budget::BodyBudget::with_bytes(MANY);
        let mut parts = [with(HeaderMap::new()), with(HeaderMap::new())];
        for parts in &mut parts {
            parts.extensions.insert(budget.share());
        }
        let [first, second] = &parts;
        assert_eq!(read(first, pieces(&[MANY / 2, MANY / 2]), MANY).await.unwrap().len(), MANY);
        let refused = read(second, pieces(&[MANY / 2, MANY / 2]), MANY).await.unwrap_err();
        assert_eq!((refused.status().as_u16(), refused.code()), (503, "unavailable"));
        assert!(read(second, pieces(&[9, 9]), MANY).await.is_ok(), "small ones are not counted");
        first.extensions.get::<RequestShare>().unwrap().release();
        assert!(read(second, pieces(&[MANY / 2, MANY / 2]), MANY).await.is_ok());
    }

    #[tokio::test]
    async fn a_packed_body_is_refused_by_its_name() {
        let of = |encoding: &'static str| {
            let encoding = header::HeaderValue::from_static(encoding);
            with(HeaderMap::from_iter([(header::CONTENT_ENCODING, encoding)]))
        };
        assert!(read(&of("identity"), pieces(&[4]), 10).await.is_ok());
        let refused = read(&of("gzip"), pieces(&[4]), 10).await.unwrap_err();
        assert_eq!(refused.status().as_u16(), 415);
        assert!(refused.message().contains("`gzip`"), "{}", refused.message());
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
