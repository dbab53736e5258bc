//! Bodies as rows store them: the mail and the request that brought it, compressed.
//!
//! A request and the mail made of it have the same content, so one frame has both, the mail first. That is a
//! third of the bytes, and several mails to a page of the database instead of one. Bodies too large for a row
//! are blobs and stay unchanged.
//!
//! Views for readers of other systems show requests and events as SQL, and no database can open a frame. So
//! requests stay plain, and each event has its row, as long as views are installed ([`PackingPolicy`]).

use std::{
    cell::RefCell,
    ops::Deref,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::Duration,
};

use bytes::Bytes;
use postway_domain::MessageStatus;
use tokio::time::{Instant, timeout};
use zstd::{
    bulk::{Compressor, Decompressor},
    zstd_safe,
};

use crate::{
    blob::INLINE_BYTES_MAX,
    error::StoreError,
    journal::event_row::open_list,
    queue::new_message_row::inline,
    record::{NewMessage, StoredBody},
    sql::schema::Migration,
};

/// The fastest of the common levels: bodies are small, and each is written once.
const LEVEL: i32 = 1;
/// Less than this is not worth a frame.
const PACKED_BYTES_MIN: usize = 256;
/// The most that a frame can contain: a mail and its request, both as large as rows allow.
const UNPACKED_BYTES_MAX: usize = 2 * INLINE_BYTES_MAX;
/// How often to check whether views are installed.
pub(crate) const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(2);
/// The longest that this check may delay messages.
const LOOK_LASTS_MAX: Duration = Duration::from_secs(1);
/// How long programs of an older version may continue to read rows beside this one: longer than it takes them
/// to notice that the schema is too new for them, and to stop.
const OLD_READERS_LAST: Duration = Duration::from_secs(10);

/// How the bodies of a row are stored. The discriminants are the values of the column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packing {
    /// Unpacked.
    Plain = 0,
    /// Mail and request in one frame, in the mail's column.
    Together = 1,
    /// The mail in a frame, and the request unpacked.
    Mail = 2,
}

/// A message on its way to a writer, with its bodies as its row will have them.
pub(crate) struct PackedMessage {
    message: NewMessage,
    packing: Packing,
    frame: Vec<u8>,
    /// The list of the events after its first, if they share a row; it is still open.
    followers: Option<String>,
}

impl Deref for PackedMessage {
    type Target = NewMessage;

    fn deref(&self) -> &NewMessage {
        &self.message
    }
}

impl PackedMessage {
    /// Packs at most as `most` says. A message that is not composed yet, or that may be prepared again, keeps
    /// its request plain: its mail is still to come.
    pub fn new(message: NewMessage, most: Packing) -> Self {
        let content = &message.content;
        let waits = matches!(
            message.state.status(),
            MessageStatus::Accepted | MessageStatus::Validating | MessageStatus::Invalid
        );
        let request = content.payload.as_ref().and_then(inline);
        let packed = match (most, inline(&content.raw)) {
            (Packing::Together, Some(raw)) if !raw.is_empty() && !waits && request.is_some() => {
                compress(&[raw, request.unwrap_or_default()]).map(|frame| (Packing::Together, frame))
            }
            (Packing::Together | Packing::Mail, Some(raw)) => {
                compress(&[raw]).map(|frame| (Packing::Mail, frame))
            }
            (Packing::Plain, _) | (_, None) => None,
        };
        let (packing, frame) = packed.unwrap_or((Packing::Plain, Vec::new()));
        let followers = if most == Packing::Together { open_list(&message.events) } else { None };
        Self { message, packing, frame, followers }
    }

    pub fn into_message(self) -> NewMessage {
        self.message
    }

    /// The value of the mail's column.
    pub fn raw_column(&self) -> &[u8] {
        match self.packing {
            Packing::Plain => inline(&self.content.raw).unwrap_or_default(),
            Packing::Together | Packing::Mail => &self.frame,
        }
    }

    /// The value of the request's column.
    pub fn payload_column(&self) -> Option<&[u8]> {
        match self.packing {
            Packing::Plain | Packing::Mail => self.content.payload.as_ref().and_then(inline),
            Packing::Together => None,
        }
    }

    /// The list of the events after its first, still open; `None` if each event has a row.
    pub fn followers(&self) -> Option<&str> {
        self.followers.as_deref()
    }

    pub fn packing_code(&self) -> i64 {
        self.packing as i64
    }

    /// Its place in a trace, as it is stored.
    pub fn trace_column(&self) -> Option<Vec<u8>> {
        self.message.trace.map(|context| context.to_bytes().to_vec())
    }

    /// The number of body bytes in its row.
    pub fn row_bytes(&self) -> usize {
        self.raw_column().len() + self.payload_column().map_or(0, <[u8]>::len)
    }
}

/// A mail that was composed after it was accepted: the value of its column, and its packing.
pub(crate) fn pack_mail(raw: &StoredBody) -> (Packing, Vec<u8>) {
    let raw = inline(raw).unwrap_or_default();
    compress(&[raw]).map_or_else(|| (Packing::Plain, raw.to_vec()), |frame| (Packing::Mail, frame))
}

thread_local! {
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// One frame of all parts; `None` if that would save little.
fn compress(parts: &[&[u8]]) -> Option<Vec<u8>> {
    let size: usize = parts.iter().map(|part| part.len()).sum();
    if !(PACKED_BYTES_MIN..=UNPACKED_BYTES_MAX).contains(&size) {
        return None;
    }
    let whole = parts.concat();
    let frame = COMPRESSOR.with_borrow_mut(|kept| {
        let compressor = match kept {
            Some(compressor) => compressor,
            None => kept.insert(Compressor::new(LEVEL).ok()?),
        };
        compressor.compress(&whole).ok()
    })?;
    (frame.len() + size / 8 <= size).then_some(frame)
}

/// A body from the bytes of its column: `len` bytes after `offset`, if they are in a frame.
pub(crate) fn unpack(column: Vec<u8>, packing: i64, offset: i64, len: i64) -> Result<Bytes, StoreError> {
    if packing == Packing::Plain as i64 {
        return Ok(column.into());
    }
    let damaged = || StoreError::Unexpected("a stored body that cannot be unpacked".into());
    let known = [Packing::Together as i64, Packing::Mail as i64];
    let size = zstd_safe::get_frame_content_size(&column).ok().flatten();
    let size = size.and_then(|size| usize::try_from(size).ok());
    let size =
        size.filter(|size| *size <= UNPACKED_BYTES_MAX && known.contains(&packing)).ok_or_else(damaged)?;
    let whole = DECOMPRESSOR.with_borrow_mut(|kept| {
        let decompressor = match kept {
            Some(decompressor) => decompressor,
            None => kept.insert(Decompressor::new().ok()?),
        };
        decompressor.decompress(&column, size).ok()
    });
    let whole = Bytes::from(whole.ok_or_else(damaged)?);
    let (start, len) = (usize::try_from(offset).ok(), usize::try_from(len).ok());
    let range = start.zip(len).and_then(|(start, len)| Some(start..start.checked_add(len)?));
    let range = range.filter(|range| range.end <= whole.len()).ok_or_else(damaged)?;
    Ok(whole.slice(range))
}

/// How much may be packed now.
pub(crate) struct PackingPolicy {
    opened_at: Instant,
    packs_after: Duration,
    has_views: AtomicBool,
    /// When to check again, in milliseconds after the opening.
    next_look_ms: AtomicU64,
    look: tokio::sync::Mutex<()>,
}

impl PackingPolicy {
    /// For a database that no program of an older version can be reading.
    pub fn alone(has_views: bool) -> Self {
        Self {
            opened_at: Instant::now(),
            packs_after: Duration::ZERO,
            has_views: AtomicBool::new(has_views),
            next_look_ms: AtomicU64::new(LOOK_AGAIN_AFTER.as_millis() as u64),
            look: tokio::sync::Mutex::default(),
        }
    }

    /// For a database on a server, which others may have used before its schema came to know frames, unless
    /// these migrations made all of it.
    pub fn beside_others(applied: &[Migration], has_views: bool) -> Self {
        let is_new = applied.first().is_some_and(|first| first.version == 1);
        let packs_after = if is_new { Duration::ZERO } else { OLD_READERS_LAST };
        Self { packs_after, ..Self::alone(has_views) }
    }

    /// The most to pack. Calls `has_views` now and then; concurrent callers wait for the answer. If that
    /// fails or takes long, the last answer applies.
    pub async fn most(&self, has_views: impl Future<Output = Result<bool, StoreError>>) -> Packing {
        if self.opened_at.elapsed() < self.packs_after {
            return Packing::Plain;
        }
        if self.is_look_due() {
            let _turn = self.look.lock().await;
            if self.is_look_due() {
                self.look(has_views).await;
            }
        }
        if self.has_views.load(Ordering::Relaxed) { Packing::Mail } else { Packing::Together }
    }

    fn is_look_due(&self) -> bool {
        self.opened_at.elapsed().as_millis() as u64 >= self.next_look_ms.load(Ordering::Acquire)
    }

    async fn look(&self, has_views: impl Future<Output = Result<bool, StoreError>>) {
        match timeout(LOOK_LASTS_MAX, has_views).await {
            Ok(Ok(found)) => self.has_views.store(found, Ordering::Relaxed),
            Ok(Err(error)) => tracing::debug!(%error, "it is not known whether views are installed"),
            Err(_) => tracing::debug!("it took too long to see whether views are installed"),
        }
        let next = self.opened_at.elapsed() + LOOK_AGAIN_AFTER;
        self.next_look_ms.store(next.as_millis() as u64, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::sample::Sample;

    const RAW: &str = "Subject: hello\r\n\r\nThe quick brown fox jumps over the lazy dog.\r\n";

    fn message(raw: &[u8], request: Option<&[u8]>) -> NewMessage {
        let sample = Sample::new(1).content(|content| {
            content.raw = Bytes::copy_from_slice(raw).into();
            content.payload = request.map(|request| Bytes::copy_from_slice(request).into());
        });
        sample.build()
    }

    fn unpacked(packed: &PackedMessage) -> (Bytes, Option<Bytes>) {
        let (raw, payload) = (&packed.content.raw, packed.content.payload.as_ref());
        let (code, column) = (packed.packing_code(), packed.raw_column().to_vec());
        let mail = unpack(column.clone(), code, 0, raw.len() as i64).unwrap();
        let request = match packed.packing {
            Packing::Together => {
                payload.map(|body| unpack(column, code, raw.len() as i64, body.len() as i64).unwrap())
            }
            Packing::Plain | Packing::Mail => packed.payload_column().map(Bytes::copy_from_slice),
        };
        (mail, request)
    }

    #[test]
    fn a_mail_and_its_request_share_a_frame_that_is_smaller_than_either() {
        let (raw, request) = (RAW.repeat(40), format!("{{\"text\":\"{}\"}}", RAW.repeat(40)));
        let packed = PackedMessage::new(message(raw.as_bytes(), Some(request.as_bytes())), Packing::Together);
        assert_eq!((packed.packing, packed.payload_column()), (Packing::Together, None));
        assert!(packed.row_bytes() < raw.len() / 4, "{}", packed.row_bytes());
        assert_eq!(unpacked(&packed), (raw.into(), Some(request.into())));
    }

    #[test]
    fn a_request_that_views_show_stays_plain() {
        let raw = RAW.repeat(40);
        let packed = PackedMessage::new(message(raw.as_bytes(), Some(b"{\"a\":1}")), Packing::Mail);
        assert_eq!((packed.packing, packed.payload_column()), (Packing::Mail, Some(&b"{\"a\":1}"[..])));
        assert_eq!(unpacked(&packed), (raw.into(), Some(Bytes::from_static(b"{\"a\":1}"))));
    }

    #[test]
    fn what_is_small_or_does_not_shrink_stays_as_it_is() {
        let noise: Vec<u8> = (0..4_096).map(|_| rand::random()).collect();
        for raw in [b"Subject: short\r\n\r\n".to_vec(), noise] {
            let packed = PackedMessage::new(message(&raw, Some(b"{}")), Packing::Together);
            assert_eq!((packed.packing, packed.raw_column()), (Packing::Plain, raw.as_slice()));
        }
    }

    #[test]
    fn a_request_whose_mail_is_still_to_come_stays_plain() {
        let request = RAW.repeat(40);
        let mut waiting = message(b"", Some(request.as_bytes()));
        waiting.state = postway_domain::MessageState::Accepted;
        let packed = PackedMessage::new(waiting, Packing::Together);
        assert_eq!((packed.packing, packed.payload_column()), (Packing::Plain, Some(request.as_bytes())));
    }

    #[test]
    fn a_damaged_frame_is_an_error_and_costs_no_memory() {
        let packed = PackedMessage::new(message(RAW.repeat(40).as_bytes(), None), Packing::Together);
        let (frame, len) = (packed.raw_column().to_vec(), packed.content.raw.len() as i64);
        assert!(unpack(frame[..frame.len() / 2].to_vec(), 2, 0, len).is_err());
        assert!(unpack(b"Subject: no frame".to_vec(), 2, 0, 17).is_err());
        assert!(unpack(frame.clone(), 2, 1, len).is_err(), "more than there is");
        assert!(unpack(frame.clone(), 2, -1, len).is_err() && unpack(frame.clone(), 2, 0, -1).is_err());
        assert!(unpack(frame, 9, 0, len).is_err(), "a packing that is not known");
        let bomb = zstd::bulk::compress(&vec![0; UNPACKED_BYTES_MAX + 1], LEVEL).unwrap();
        assert!(unpack(bomb, 2, 0, 1).is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_packed_while_older_programs_may_read_and_no_request_while_views_show_it() {
        let old = [Migration { version: 13, name: "packing", writable_from: 13, sql: "" }];
        let policy = PackingPolicy::beside_others(&old, false);
        assert_eq!(policy.most(async { Ok(false) }).await, Packing::Plain);
        tokio::time::advance(OLD_READERS_LAST).await;
        assert_eq!(policy.most(async { Ok(true) }).await, Packing::Mail);
        let unknown = || async { Err(StoreError::Unavailable("away".into())) };
        assert_eq!(policy.most(unknown()).await, Packing::Mail);
        tokio::time::advance(LOOK_AGAIN_AFTER).await;
        assert_eq!(policy.most(unknown()).await, Packing::Mail, "what was known holds");
        tokio::time::advance(LOOK_AGAIN_AFTER).await;
        assert_eq!(policy.most(async { Ok(false) }).await, Packing::Together);
        let new = [Migration { version: 1, name: "ground", writable_from: 1, sql: "" }];
        assert_eq!(PackingPolicy::beside_others(&new, true).most(async { Ok(false) }).await, Packing::Mail);
    }
}
