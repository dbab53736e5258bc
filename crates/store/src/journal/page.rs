//! A page of the journal, and its binary form.
//!
//! The form is one byte for the version, the number of lanes, the lanes (16 bytes each, each once), then the
//! entries (24 bytes each). Numbers are big-endian. Bytes that cannot be read are an error, never a shorter
//! page.

use postway_domain::{EventKind, LaneId, MessageUid, Time};

use crate::error::StoreError;

/// The only version so far.
const FORM: u8 = 1;
const HEAD_BYTES: usize = 3;
const LANE_BYTES: usize = 16;
const ENTRY_BYTES: usize = 24;

/// The events that one transaction appended to histories of one tenant's messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JournalPage {
    /// The latest time of its entries.
    pub at: Time,
    pub lanes: Vec<LaneId>,
    pub entries: Vec<JournalEntry>,
}

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JournalEntry {
    pub uid: MessageUid,
    pub seq: u32,
    pub kind: EventKind,
    pub detail: EventDetail,
    /// The index of its message's lane among those of the page.
    pub lane: u16,
}

/// What the kind of an event does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventDetail {
    /// Nothing more.
    None = 0,
    /// A scheduled message was deferred by a failure.
    Deferred = 1,
    /// A doubt was resolved: it was sent.
    ResolvedSent = 2,
    /// A doubt was resolved: it failed.
    ResolvedFailed = 3,
}

impl EventDetail {
    const ALL: [Self; 4] = [Self::None, Self::Deferred, Self::ResolvedSent, Self::ResolvedFailed];
}

impl JournalEntry {
    pub fn is_deferred(&self) -> bool {
        self.detail == EventDetail::Deferred
    }
}

impl JournalPage {
    pub fn new(at: Time) -> Self {
        Self { at, lanes: Vec::new(), entries: Vec::new() }
    }

    pub fn add(
        &mut self,
        at: Time,
        lane: LaneId,
        uid: MessageUid,
        seq: u32,
        kind: EventKind,
        detail: EventDetail,
    ) {
        self.at = self.at.max(at);
        let known = self.lanes.iter().rposition(|known| *known == lane);
        let place = known.unwrap_or_else(|| {
            self.lanes.push(lane);
            self.lanes.len() - 1
        });
        // A page has far fewer entries than this type can count, and so fewer lanes.
        let lane = u16::try_from(place).unwrap_or(u16::MAX);
        self.entries.push(JournalEntry { uid, seq, kind, detail, lane });
    }

    pub fn encode(&self) -> Vec<u8> {
        let size = HEAD_BYTES + self.lanes.len() * LANE_BYTES + self.entries.len() * ENTRY_BYTES;
        let mut bytes = Vec::with_capacity(size);
        bytes.push(FORM);
        bytes.extend((self.lanes.len() as u16).to_be_bytes());
        self.lanes.iter().for_each(|lane| bytes.extend(lane.as_bytes()));
        for entry in &self.entries {
            bytes.extend(entry.uid.as_bytes());
            bytes.extend(entry.seq.to_be_bytes());
            bytes.extend([entry.kind as u8, entry.detail as u8]);
            bytes.extend(entry.lane.to_be_bytes());
        }
        bytes
    }

    pub fn decode(at: Time, bytes: &[u8]) -> Result<Self, StoreError> {
        read(at, bytes)
            .ok_or_else(|| StoreError::Unexpected("a page of the journal that does not read".to_owned()))
    }
}

fn read(at: Time, bytes: &[u8]) -> Option<JournalPage> {
    let (&[form, high, low], rest) = bytes.split_first_chunk::<HEAD_BYTES>()?;
    let (lanes, entries) =
        rest.split_at_checked(usize::from(u16::from_be_bytes([high, low])) * LANE_BYTES)?;
    let (lanes, _) = lanes.as_chunks::<LANE_BYTES>();
    let (entries, []) = entries.as_chunks::<ENTRY_BYTES>() else { return None };
    let entry = |bytes: &[u8; ENTRY_BYTES]| {
        let (uid, rest) = bytes.split_first_chunk::<16>()?;
        let (seq, rest) = rest.split_first_chunk::<4>()?;
        let &[kind, detail, high, low] = rest else { return None };
        let lane = u16::from_be_bytes([high, low]);
        Some(JournalEntry {
            uid: MessageUid::from_bytes(*uid),
            seq: u32::from_be_bytes(*seq),
            kind: EventKind::from_code(kind.into())?,
            detail: EventDetail::ALL.into_iter().find(|known| *known as u8 == detail)?,
            lane: Some(lane).filter(|lane| usize::from(*lane) < lanes.len())?,
        })
    };
    let entries = entries.iter().map(entry).collect::<Option<Vec<_>>>()?;
    let lanes = lanes.iter().copied().map(LaneId::from_bytes).collect();
    (form == FORM).then_some(JournalPage { at, lanes, entries })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> JournalPage {
        let mut page = JournalPage::new(Time::from_millis(5));
        for (n, &kind) in (0..).zip(EventKind::ALL) {
            let (lane, uid) = (LaneId::from_bytes([n % 3; 16]), MessageUid::from_bytes([n; 16]));
            let detail = EventDetail::ALL[usize::from(n) % EventDetail::ALL.len()];
            page.add(Time::from_millis(9 - i64::from(n)), lane, uid, u32::from(n) << 20, kind, detail);
        }
        page
    }

    #[test]
    fn a_page_reads_back_whole() {
        let page = page();
        assert_eq!((page.lanes.len(), page.at), (3, Time::from_millis(9)));
        let bytes = page.encode();
        assert_eq!(bytes.len(), HEAD_BYTES + 3 * LANE_BYTES + page.entries.len() * ENTRY_BYTES);
        assert_eq!(JournalPage::decode(page.at, &bytes).unwrap(), page);
    }

    #[test]
    fn bytes_that_are_no_page_are_an_error() {
        let whole = page().encode();
        for bytes in [&whole[..whole.len() - 1], &whole[..2], &[], &[FORM, 255, 255]] {
            assert!(JournalPage::decode(Time::from_millis(0), bytes).is_err());
        }
        let last = whole.len() - 1;
        // Fails for another version, an unknown lane, or an unknown event.
        for (place, value) in [(0, 2), (last, 200), (last - 3, 0), (last - 2, 9)] {
            let mut bytes = whole.clone();
            bytes[place] = value;
            assert!(JournalPage::decode(Time::from_millis(0), &bytes).is_err(), "{place}");
        }
    }
}
