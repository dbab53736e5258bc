//! Reads a page of mails into the records that the store registers.
//!
//! Memory is bounded: bodies too large for a row become blobs as they arrive, large mails are read one at a
//! time, and every fetch takes its bytes in advance from one budget of all mailboxes, of which a tenant has
//! at most half. The size that the server announces decides how much is taken, and no more than that is read:
//! a mail that is larger than announced is read again with the largest size, and a page that is larger ends
//! when its bytes are used up.

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
    blob::{BlobStorage, INLINE_BYTES_MAX},
    record::{NewInbound, StoredBody},
};
use tokio::sync::mpsc;

use super::start_position::arrived_at;
use crate::{
    imap::{FetchedContent, FetchedMail, ListedMail},
    mail::{MailSummary, ParsedMail, bounded},
    source::{OpenFolder, SourceError},
};

/// Mails up to this size are read together.
const SMALL_BYTES_MAX: usize = 1024 * 1024;
/// The most bytes of mails that are read together.
const TOGETHER_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// The most bytes that are fetched at the same time, for all mailboxes and for those of one tenant.
const UNDERWAY_BYTES_MAX: usize = 128 * 1024 * 1024;
const UNDERWAY_OF_TENANT_BYTES_MAX: usize = UNDERWAY_BYTES_MAX / 2;
const _: () = assert!(MailboxSettings::MAIL_BYTES_MOST as usize <= UNDERWAY_OF_TENANT_BYTES_MAX);
/// How long a fetch waits for its part of the budget.
const UNDERWAY_WAIT_MAX: Duration = Duration::from_secs(60);
/// The longest reason why a mail was not read.
const REASON_CHARS_MAX: usize = 300;
/// How often a mail that the server withholds is asked for.
const WITHHELD_MAX: u32 = 3;

/// Reads mails. See the module.
pub(super) struct PageReader {
    pub store: Arc<dyn Store>,
    pub depot: Arc<BlobStorage>,
    pub clock: Arc<dyn Clock>,
    underway: Arc<FairBudget>,
    uids: RisingUids,
}

/// The mails that were read, and the fault that ended reading, if there was one.
pub(super) struct PageReadResult {
    /// The mails, in the order of the page, without gaps.
    pub mails: Vec<NewInbound>,
    /// The number of the page's mails that were answered.
    pub answered: usize,
    pub fault: Option<ReadFault>,
}

/// Why reading was ended.
pub(super) enum ReadFault {
    Source(SourceError),
    Store(StoreError),
}

/// How often mails were asked for in vain, by UID.
pub(super) type Withheld = BTreeMap<u32, u32>;

impl PageReader {
    pub(super) fn new(store: Arc<dyn Store>, depot: Arc<BlobStorage>, clock: Arc<dyn Clock>) -> Self {
        let underway = FairBudget::new(UNDERWAY_BYTES_MAX, UNDERWAY_OF_TENANT_BYTES_MAX);
        Self { store, depot, clock, underway, uids: RisingUids::default() }
    }

    /// Reads as many of the first mails as can be read together. At least one of them is answered unless
    /// there is a fault.
    pub(super) async fn read(
        &self,
        folder: &mut dyn OpenFolder,
        mailbox: &WatchedMailbox,
        mails: &[ListedMail],
        withheld: &mut Withheld,
    ) -> PageReadResult {
        let largest = mailbox.settings.mail_bytes_max();
        let together = &mails[..together(mails)];
        let mut read: BTreeMap<u32, NewInbound> = BTreeMap::new();
        let mut larger = Vec::new();
        let mut fault = None;
        if let [large] = together
            && large.size > SMALL_BYTES_MAX as u64
        {
            larger.push(*large);
        } else {
            let budget = page_budget(together);
            fault = self.fetch(folder, mailbox, together, budget, &mut read, withheld).await.err();
            // The server had announced another size for these.
            larger = together
                .iter()
                .filter(|mail| {
                    read.get(&mail.uid).is_some_and(|read| is_larger_than_announced(read, largest))
                })
                .copied()
                .collect();
            larger.iter().for_each(|mail| drop(read.remove(&mail.uid)));
        }
        for mail in larger {
            if fault.is_some() {
                break;
            }
            let announced = usize::try_from(mail.size).unwrap_or(largest).min(largest);
            // A mail that was announced as small and is not may have any size.
            let first = if announced > SMALL_BYTES_MAX { announced } else { largest };
            let budget = PageBudget { bytes: first, mail_bytes_max: first };
            fault = self.fetch(folder, mailbox, &[mail], budget, &mut read, withheld).await.err();
            if fault.is_none()
                && read.get(&mail.uid).is_some_and(|read| is_larger_than_announced(read, largest))
            {
                read.remove(&mail.uid);
                let budget = PageBudget { bytes: largest, mail_bytes_max: largest };
                fault = self.fetch(folder, mailbox, &[mail], budget, &mut read, withheld).await.err();
            }
        }
        let mut answered = Vec::new();
        for mail in together {
            let Some(new) = read.remove(&mail.uid) else { break };
            // The uids follow the order of the folder, whatever the order in which the server sent the mails.
            let uid = self.uids.next(self.clock.now(), &mut rand::rng());
            answered.push(NewInbound { uid, ..new });
        }
        PageReadResult { answered: answered.len(), mails: answered, fault }
    }

    async fn fetch(
        &self,
        folder: &mut dyn OpenFolder,
        mailbox: &WatchedMailbox,
        mails: &[ListedMail],
        budget: PageBudget,
        read: &mut BTreeMap<u32, NewInbound>,
        withheld: &mut Withheld,
    ) -> Result<(), ReadFault> {
        let Some(_share) = self.underway.wait(&mailbox.tenant, budget.bytes, UNDERWAY_WAIT_MAX).await else {
            let why = "other mail takes all the memory for reading; it is read later".to_owned();
            return Err(ReadFault::Source(SourceError::passing(why)));
        };
        let (out, mut fetched) = mpsc::channel(1);
        // The task owns the receiver: if it ends, the fetch ends too.
        let keeping = async move {
            let mut bytes = 0;
            while let Some(FetchedMail { uid, content }) = fetched.recv().await {
                let Some(listed) = mails.iter().find(|mail| mail.uid == uid) else { continue };
                let new = self.keep(mailbox, listed, content, withheld).await?;
                bytes += new.body.as_ref().and_then(StoredBody::inline).map_or(0, Bytes::len);
                read.insert(uid, new);
                if bytes > budget.bytes {
                    let why = "the server sent far more than it had said; it is read on later".to_owned();
                    return Err(ReadFault::Source(SourceError::passing(why)));
                }
            }
            Ok(())
        };
        let (fetched, keeping) = tokio::join!(folder.fetch(mails, budget.mail_bytes_max, out), keeping);
        keeping?;
        fetched.map_err(ReadFault::Source)
    }

    async fn keep(
        &self,
        mailbox: &WatchedMailbox,
        listed: &ListedMail,
        content: FetchedContent,
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
            FetchedContent::Mail(bytes) => {
                let read = unread(InboundState::Received, None);
                self.fill(read, &mailbox.tenant, bytes, now).await.map_err(ReadFault::Store)
            }
            FetchedContent::TooLarge { size } => {
                let largest = mailbox.settings.mail_bytes_max();
                let why = format!(
                    "it has {size} bytes: at most {largest} are read (mail_bytes_max of the mailbox)"
                );
                Ok(NewInbound { size, ..unread(InboundState::Dead, Some(why)) })
            }
            FetchedContent::Gone => {
                Ok(unread(InboundState::Gone, Some("it was removed before it could be read".to_owned())))
            }
            FetchedContent::Withheld(words) => {
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
        let digest_and_summary = |bytes: &Bytes| (sha256(bytes), summary(bytes));
        let (digest, summary) = match bytes.len() > SMALL_BYTES_MAX {
            false => digest_and_summary(&bytes),
            true => {
                let bytes = bytes.clone();
                let computed = tokio::task::spawn_blocking(move || digest_and_summary(&bytes)).await;
                computed.map_err(|error| StoreError::Unexpected(error.to_string()))?
            }
        };
        let size = bytes.len() as u64;
        let body = self.depot.keep(&*self.store, tenant, bytes, INLINE_BYTES_MAX, now).await?;
        let MailSummary { sender, recipients, subject, message_id, dated_at } = summary;
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

/// The summary of a mail. A mail that makes the parser panic is stored without one: the cursor must pass it,
/// or the mailbox would be stuck.
fn summary(bytes: &Bytes) -> MailSummary {
    catch_unwind(AssertUnwindSafe(|| MailSummary::from_mail(&ParsedMail::new(bytes)))).unwrap_or_default()
}

/// The memory that reading some mails may take.
#[derive(Clone, Copy)]
struct PageBudget {
    /// For all of them together.
    bytes: usize,
    /// For each of them.
    mail_bytes_max: usize,
}

/// The budget of mails that are read together. Servers that only estimate sizes are not far off: twice the
/// sum is enough.
fn page_budget(mails: &[ListedMail]) -> PageBudget {
    let announced =
        mails.iter().fold(0_u64, |sum, mail| sum.saturating_add(mail.size)).min(TOGETHER_BYTES_MAX);
    let announced = usize::try_from(announced).unwrap_or(SMALL_BYTES_MAX);
    PageBudget { bytes: announced * 2 + SMALL_BYTES_MAX, mail_bytes_max: SMALL_BYTES_MAX }
}

/// How many of these mails are read together: as many as are small, up to a limit, or one large mail.
fn together(mails: &[ListedMail]) -> usize {
    let mut bytes = 0_u64;
    let small = mails.iter().take_while(|mail| {
        bytes = bytes.saturating_add(mail.size);
        mail.size <= SMALL_BYTES_MAX as u64 && bytes <= TOGETHER_BYTES_MAX
    });
    small.count().max(1).min(mails.len())
}

/// Whether a mail was not read only because the server had announced another size.
fn is_larger_than_announced(mail: &NewInbound, largest: usize) -> bool {
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
        let mail = |size| ListedMail { uid: 1, size, internal_date: None };
        let (small, large) = (mail(1000), mail(5_000_000));
        assert_eq!(together(&[small, small, large, small]), 2);
        assert_eq!(together(&[large, small]), 1);
        assert_eq!(together(&[mail(1_000_000); 10]), 4);
        assert_eq!(together(&[mail(u64::MAX), mail(u64::MAX)]), 1);
        assert_eq!(together(&[]), 0);
    }
}
