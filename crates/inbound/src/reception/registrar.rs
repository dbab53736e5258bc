//! Makes mail durable: one mail at a time for each mailbox, so that the cursor of the mailbox, which is the
//! fence of every registration, is where this process left it. If another node moved it, it is read again.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use postway_domain::{Clock, InboundState, WatchedMailbox, id::RisingUids, inbound::FolderCursor};
use postway_store::{
    Store, StoreError,
    blob::{BlobStorage, INLINE_BYTES_MAX},
    record::{MailboxKey, MailboxPage, NewInbound, RegistrationResult},
};

use crate::{
    crash::crash_point,
    mail::{MailSummary, ParsedMail},
};

/// How often a registration is tried while other nodes are in the way.
const TRIES_MAX: u32 = 20;
/// The folder in which received mail is listed.
const FOLDER: &str = "reception";
/// The validity of the numbers that mail gets here.
const UID_VALIDITY: u32 = 1;

/// The turn of a mailbox, with its cursor as this process last wrote it.
type MailboxTurn = Arc<tokio::sync::Mutex<Option<FolderCursor>>>;

/// Writes received mail.
pub(super) struct MailRegistrar {
    store: Arc<dyn Store>,
    depot: Arc<BlobStorage>,
    clock: Arc<dyn Clock>,
    uids: RisingUids,
    /// One entry for each mailbox with mail under way, or that had some.
    turns: Mutex<HashMap<MailboxKey, MailboxTurn>>,
}

impl MailRegistrar {
    pub(super) fn new(store: Arc<dyn Store>, depot: Arc<BlobStorage>, clock: Arc<dyn Clock>) -> Self {
        Self { store, depot, clock, uids: RisingUids::default(), turns: Mutex::default() }
    }

    /// Stores a mail; returns once it is durable. A mail that the mailbox has had before is not stored again.
    pub(super) async fn register(
        &self,
        mailbox: &WatchedMailbox,
        raw: Bytes,
        digest: [u8; 32],
    ) -> Result<(), StoreError> {
        let key = MailboxKey { tenant: mailbox.tenant.clone(), mailbox: mailbox.id.clone() };
        let (now, size) = (self.clock.now(), raw.len() as u64);
        let mail = ParsedMail::new(&raw);
        let MailSummary { sender, recipients, subject, message_id, dated_at } = MailSummary::from_mail(&mail);
        let body = self.depot.keep(&*self.store, &key.tenant, raw.clone(), INLINE_BYTES_MAX, now).await;
        let mut new = NewInbound {
            uid: self.uids.next(now, &mut rand::rng()),
            folder: FOLDER.to_owned(),
            imap_uid: 0,
            digest: Some(digest),
            size,
            arrived_at: Some(now),
            dated_at,
            sender,
            recipients,
            subject,
            message_id,
            body: Some(body.map_err(StoreError::from)?),
            state: InboundState::Received,
            error: None,
        };
        let turn = self.turns().entry(key.clone()).or_default().clone();
        let mut cursor = turn.lock().await;
        for _ in 0..TRIES_MAX {
            let to = next(*cursor);
            new.imap_uid = to.last_uid;
            let uid_next = to.last_uid.saturating_add(1);
            let (key, mails) = (key.clone(), vec![new.clone()]);
            crash_point("reception_before_register");
            let page = MailboxPage { key: key.clone(), seen: *cursor, to, uid_next, at: now, mails };
            // If the answer is lost, where the cursor is is not known.
            let registered = self.store.register(page).await.inspect_err(|_| *cursor = None)?;
            match registered {
                RegistrationResult::Done { .. } => {
                    crash_point("reception_after_register");
                    *cursor = Some(to);
                    return Ok(());
                }
                RegistrationResult::Stale => {
                    let Some((_, state)) = self.store.mailbox(&key).await? else {
                        self.turns().remove(&key);
                        return Err(StoreError::Conflict("the mailbox was deleted meanwhile".to_owned()));
                    };
                    *cursor = state.cursor;
                }
            }
        }
        Err(StoreError::Conflict("other nodes wrote to the same mailbox all the time".to_owned()))
    }

    fn turns(&self) -> std::sync::MutexGuard<'_, HashMap<MailboxKey, MailboxTurn>> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The cursor after one more mail. Numbers that are used up begin again under another validity.
fn next(cursor: Option<FolderCursor>) -> FolderCursor {
    let (uid_validity, last_uid) = match cursor {
        None => (UID_VALIDITY, 1),
        Some(cursor) => match cursor.last_uid.checked_add(1).filter(|uid| *uid < u32::MAX) {
            Some(uid) => (cursor.uid_validity, uid),
            None => (cursor.uid_validity.wrapping_add(1).max(1), 1),
        },
    };
    FolderCursor { uid_validity, last_uid, not_before: None, old_through: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_rise_and_begin_again_when_they_are_used_up() {
        let first = next(None);
        assert_eq!((first.uid_validity, first.last_uid), (1, 1));
        let second = next(Some(first));
        assert_eq!((second.uid_validity, second.last_uid), (1, 2));
        let over = next(Some(FolderCursor { last_uid: u32::MAX - 1, ..second }));
        assert_eq!((over.uid_validity, over.last_uid), (2, 1));
    }
}
