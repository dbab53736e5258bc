//! Reading a page: mails become what the store registers.
//!
//! Memory is bounded: bodies too large for a row go to the depot as they come, large mails are read one at a time, and what is
//! on its way is taken from one budget of all mailboxes before it is asked for, of which a tenant has half. A server's word on
//! the size of a mail decides how much is taken, so no more than that is read: a mail that is larger than the server said is
//! read again with room for the largest, and a page that is larger ends where it has had its room.

use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use aws_lc_rs::digest;
use bytes::Bytes;
use postway_domain::{
    Clock, InboundState, MessageUid, TenantId, Time, WatchedMailbox, id::RisingUids, mailbox::MailboxSettings,
};
use postway_intake::FairBudget;
use postway_store::{
    Store, StoreError,
    blob::{Depot, INLINE_BYTES_MAX},
    record::{Body, NewInbound},
};
use tokio::sync::mpsc;

use super::start_position::arrived_at;
use crate::{
    imap::{Content, Fetched, Listed},
    mail::{Mail, Summary, bounded},
    source::{OpenFolder, SourceError},
};

/// Mails up to this size are read together.
const SMALL_BYTES_MAX: usize = 1024 * 1024;
/// Mails that are read together have at most so many bytes.
const TOGETHER_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// What may be on its way at the same time, of all mailboxes and of those of one tenant.
const UNDERWAY_BYTES_MAX: usize = 128 * 1024 * 1024;
const UNDERWAY_OF_TENANT_BYTES_MAX: usize = UNDERWAY_BYTES_MAX / 2;
const _: () = assert!(MailboxSettings::MAIL_BYTES_MOST as usize <= UNDERWAY_OF_TENANT_BYTES_MAX);
/// How long to wait until as much may be on its way.
const UNDERWAY_WAIT_MAX: Duration = Duration::from_secs(60);
/// The longest text that tells why a mail was not read.
const REASON_CHARS_MAX: usize = 300;
/// How often a mail that the server does not give is asked for.
const WITHHELD_MAX: u32 = 3;

/// What reading needs.
pub(super) struct Reader {
    pub store: Arc<dyn Store>,
    pub depot: Arc<Depot>,
    pub clock: Arc<dyn Clock>,
    underway: Arc<FairBudget>,
    uids: RisingUids,
}

/// What was read of a page, and what ended it before its end.
pub(super) struct Read {
    /// In the order of the page, without gaps.
    pub mails: Vec<NewInbound>,
    /// How many of the page's mails these are.
    pub answered: usize,
    pub fault: Option<ReadFault>,
}

/// Why reading broke off.
pub(super) enum ReadFault {
    Source(SourceError),
    Store(StoreError),
}

/// How often mails were asked for in vain, by UID.
pub(super) type Withheld = BTreeMap<u32, u32>;

impl Reader {
    pub(super) fn new(store: Arc<dyn Store>, depot: Arc<Depot>, clock: Arc<dyn Clock>) -> Self {
        let underway = FairBudget::new(UNDERWAY_BYTES_MAX, UNDERWAY_OF_TENANT_BYTES_MAX);
        Self { store, depot, clock, underway, uids: RisingUids::default() }
    }

    /// Reads the first of these mails that can be read together; at least one of them is answered for unless there is a
    /// fault.
    pub(super) async fn read(
        &self,
        folder: &mut dyn OpenFolder,
        mailbox: &WatchedMailbox,
        mails: &[Listed],
        withheld: &mut Withheld,
    ) -> Read {
        let largest = mailbox.settings.mail_bytes_max();
        let together = &mails[..together(mails)];
        let mut kept: BTreeMap<u32, NewInbound> = BTreeMap::new();
        let mut larger = Vec::new();
        let mut fault = None;
        if let [large] = together
            && large.size > SMALL_BYTES_MAX as u64
        {
            larger.push(*large);
        } else {
            let room = page_room(together);
            fault = self.fetch(folder, mailbox, together, room, &mut kept, withheld).await.err();
            // Of these the server had told another size.
            larger = together
                .iter()
                .filter(|mail| kept.get(&mail.uid).is_some_and(|kept| is_larger_than_told(kept, largest)))
                .copied()
                .collect();
            larger.iter().for_each(|mail| drop(kept.remove(&mail.uid)));
        }
        for mail in larger {
            if fault.is_some() {
                break;
            }
            let told = usize::try_from(mail.size).unwrap_or(largest).min(largest);
            // What was said to be small and is not may have any size.
            let first = if told > SMALL_BYTES_MAX { told } else { largest };
            let room = PageRoom { bytes: first, mail_bytes_max: first };
            fault = self.fetch(folder, mailbox, &[mail], room, &mut kept, withheld).await.err();
            if fault.is_none() && kept.get(&mail.uid).is_some_and(|kept| is_larger_than_told(kept, largest)) {
                kept.remove(&mail.uid);
                let room = PageRoom { bytes: largest, mail_bytes_max: largest };
                fault = self.fetch(folder, mailbox, &[mail], room, &mut kept, withheld).await.err();
            }
        }
        let mut answered = Vec::new();
        for mail in together {
            let Some(new) = kept.remove(&mail.uid) else { break };
            // In the order of the folder, whatever the order in which the server gave them.
            let uid = self.uids.next(self.clock.now(), &mut rand::rng());
            answered.push(NewInbound { uid, ..new });
        }
        Read { answered: answered.len(), mails: answered, fault }
    }

    async fn fetch(
        &self,
        folder: &mut dyn OpenFolder,
        mailbox: &WatchedMailbox,
        mails: &[Listed],
        room: PageRoom,
        kept: &mut BTreeMap<u32, NewInbound>,
        withheld: &mut Withheld,
    ) -> Result<(), ReadFault> {
        let Some(_held) = self.underway.wait(&mailbox.tenant, room.bytes, UNDERWAY_WAIT_MAX).await else {
            let why = "other mail took all the room there is; it is read later".to_owned();
            return Err(ReadFault::Source(SourceError::passing(why)));
        };
        let (out, mut fetched) = mpsc::channel(1);
        // It takes the receiving end along: when it breaks off, so does the fetching.
        let keeping = async move {
            let mut bytes = 0;
            while let Some(Fetched { uid, content }) = fetched.recv().await {
                let Some(listed) = mails.iter().find(|mail| mail.uid == uid) else { continue };
                let new = self.keep(mailbox, listed, content, withheld).await?;
                bytes += new.body.as_ref().and_then(Body::inline).map_or(0, Bytes::len);
                kept.insert(uid, new);
                if bytes > room.bytes {
                    let why = "the server sent far more than it had said; it is read on later".to_owned();
                    return Err(ReadFault::Source(SourceError::passing(why)));
                }
            }
            Ok(())
        };
        let (fetched, keeping) = tokio::join!(folder.fetch(mails, room.mail_bytes_max, out), keeping);
        keeping?;
        fetched.map_err(ReadFault::Source)
    }

    async fn keep(
        &self,
        mailbox: &WatchedMailbox,
        listed: &Listed,
        content: Content,
        withheld: &mut Withheld,
    ) -> Result<NewInbound, ReadFault> {
        let now = self.clock.now();
        let unread = |state, error: Option<String>| NewInbound {
            uid: MessageUid::new(now, &mut rand::rng()),
            folder: mailbox.settings.folder.clone(),
            imap_uid: listed.uid,
            digest: None,
            size: listed.size,
            arrived_at: arrived_at(listed),
            dated_at: None,
            sender: None,
            recipients: None,
            subject: None,
            message_id: None,
            body: None,
            state,
            error: error.map(|error| bounded(&error, REASON_CHARS_MAX)),
        };
        match content {
            Content::Mail(bytes) => {
                let read = unread(InboundState::Received, None);
                self.fill(read, &mailbox.tenant, bytes, now).await.map_err(ReadFault::Store)
            }
            Content::TooLarge { size } => {
                let largest = mailbox.settings.mail_bytes_max();
                let why = format!(
                    "it has {size} bytes: at most {largest} are read (mail_bytes_max of the mailbox)"
                );
                Ok(NewInbound { size, ..unread(InboundState::Dead, Some(why)) })
            }
            Content::Gone => {
                Ok(unread(InboundState::Gone, Some("it was removed before it could be read".to_owned())))
            }
            Content::Withheld(words) => {
                let times = withheld.entry(listed.uid).or_default();
                *times += 1;
                let why = format!("the server lists mail {} and does not give it: {words}", listed.uid);
                if *times < WITHHELD_MAX {
                    return Err(ReadFault::Source(SourceError::passing(why)));
                }
                withheld.remove(&listed.uid);
                Ok(unread(InboundState::Dead, Some(why)))
            }
        }
    }

    async fn fill(
        &self,
        read: NewInbound,
        tenant: &TenantId,
        bytes: Bytes,
        now: Time,
    ) -> Result<NewInbound, StoreError> {
        let look = |bytes: &Bytes| (sha256(bytes), summary(bytes));
        let (digest, summary) = match bytes.len() > SMALL_BYTES_MAX {
            false => look(&bytes),
            true => {
                let bytes = bytes.clone();
                let looked = tokio::task::spawn_blocking(move || look(&bytes)).await;
                looked.map_err(|error| StoreError::Unexpected(error.to_string()))?
            }
        };
        let size = bytes.len() as u64;
        let body = self.depot.keep(&*self.store, tenant, bytes, INLINE_BYTES_MAX, now).await?;
        let Summary { sender, recipients, subject, message_id, dated_at } = summary;
        Ok(NewInbound {
            digest: Some(digest),
            size,
            dated_at,
            sender,
            recipients,
            subject,
            message_id,
            body: Some(body),
            ..read
        })
    }
}

/// What lists show of a mail. One that breaks the parser is kept without it: the cursor must pass it, or the mailbox would be read no
/// further.
fn summary(bytes: &Bytes) -> Summary {
    catch_unwind(AssertUnwindSafe(|| Summary::of(&Mail::new(bytes)))).unwrap_or_default()
}

/// What reading some mails may take of memory.
#[derive(Clone, Copy)]
struct PageRoom {
    /// All of them.
    bytes: usize,
    /// Each of them.
    mail_bytes_max: usize,
}

/// The room for mails that are read together. Servers that only estimate sizes are not far off: twice as much is enough for them.
fn page_room(mails: &[Listed]) -> PageRoom {
    let told = mails.iter().fold(0_u64, |sum, mail| sum.saturating_add(mail.size)).min(TOGETHER_BYTES_MAX);
    let told = usize::try_from(told).unwrap_or(SMALL_BYTES_MAX);
    PageRoom { bytes: told * 2 + SMALL_BYTES_MAX, mail_bytes_max: SMALL_BYTES_MAX }
}

/// How many of these mails are read together: as many as are small, up to a bound, or one that is not.
fn together(mails: &[Listed]) -> usize {
    let mut bytes = 0_u64;
    let small = mails.iter().take_while(|mail| {
        bytes = bytes.saturating_add(mail.size);
        mail.size <= SMALL_BYTES_MAX as u64 && bytes <= TOGETHER_BYTES_MAX
    });
    small.count().max(1).min(mails.len())
}

/// Whether a mail was not read only because the server had told another size.
fn is_larger_than_told(mail: &NewInbound, largest: usize) -> bool {
    mail.state == InboundState::Dead && mail.size > SMALL_BYTES_MAX as u64 && mail.size <= largest as u64
}

pub(crate) fn sha256(bytes: &[u8]) -> [u8; 32] {
    let mut whole = [0; 32];
    whole.copy_from_slice(digest::digest(&digest::SHA256, bytes).as_ref());
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_mails_are_read_together_and_a_large_one_alone() {
        let mail = |size| Listed { uid: 1, size, internal_date: None };
        let (small, large) = (mail(1000), mail(5_000_000));
        assert_eq!(together(&[small, small, large, small]), 2);
        assert_eq!(together(&[large, small]), 1);
        assert_eq!(together(&[mail(1_000_000); 10]), 4);
        assert_eq!(together(&[mail(u64::MAX), mail(u64::MAX)]), 1);
        assert_eq!(together(&[]), 0);
    }
}
