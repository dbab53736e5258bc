//! Storing a page of mail and moving the cursor, in one transaction.
//!
//! The mailbox's state is locked first and its cursor compared, so one of two readers registers a page. Mail
//! whose bytes the mailbox has had before, also earlier in the same page, is not written. Mail that could not
//! be read has no digest and is identified by its UID in the folder.

use std::collections::HashSet;

use postway_domain::{InboundState, MessageUid};

use super::{cursor, mailboxes::key_of};
use crate::{
    error::StoreError,
    record::{MailboxPage, NewInbound, RegistrationResult, StoredBody},
    sql::{SqlSession, SqlText, Value, multi_row::MultiRow, values},
};

/// The most bytes in one statement, well below what servers accept.
const INSERT_BYTES_MAX: u64 = 4 * 1024 * 1024;

const MOVE: SqlText = SqlText::same(
    "UPDATE mailbox_state SET uid_validity = ?, last_uid = ?, not_before = ?, old_through = ?, uid_next = ? \
     WHERE tenant = ? AND mailbox = ?",
);
pub(crate) static SEEN: MultiRow =
    MultiRow::new("SELECT digest FROM inbound_seen WHERE tenant = ? AND mailbox = ? AND digest IN (", 1, ")");
pub(crate) static AT_PLACE: MultiRow = MultiRow::new(
    "SELECT imap_uid FROM inbound WHERE tenant = ? AND mailbox = ? AND uid_validity = ? AND digest IS NULL AND folder = ? \
     AND imap_uid IN (",
    1,
    ")",
);
static SEE: MultiRow = MultiRow::new("INSERT INTO inbound_seen (tenant, mailbox, digest) VALUES ", 3, "");
static INSERT: MultiRow = MultiRow::of_pieces(
    "INSERT INTO inbound (uid, tenant, mailbox, folder, uid_validity, imap_uid, digest, size, arrived_at, dated_at, sender, \
     recipients, subject, message_id, state, due_at, error, created_at, updated_at, settled_at, tries, reminders, \
     event_seq) VALUES ",
    "(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,0,0,0)",
    ",",
    "",
);
static INSERT_BODY: MultiRow =
    MultiRow::new("INSERT INTO inbound_body (uid, size, raw, raw_blob) VALUES ", 4, "");

#[cfg(test)]
pub(crate) fn statements() -> Vec<SqlText> {
    let multi = [&SEEN, &AT_PLACE, &SEE, &INSERT, &INSERT_BODY].map(|multi| multi.sample().into());
    [MOVE].into_iter().chain(multi).collect()
}

/// Refuses a page that could never be processed.
pub(crate) fn check(page: &MailboxPage) -> Result<(), StoreError> {
    let lacks_bytes = |mail: &NewInbound| mail.digest.is_none() || mail.body.is_none();
    let is_wrong = |mail: &&NewInbound| match mail.state {
        InboundState::Received => lacks_bytes(mail),
        state => !state.is_settled(),
    };
    match page.mails.iter().find(is_wrong) {
        None => Ok(()),
        Some(mail) => Err(StoreError::Unexpected(format!(
            "the mail {} cannot be registered as {}: it has no bytes, or is neither new nor settled",
            mail.uid,
            mail.state.as_str()
        ))),
    }
}

/// Stores the new mail of a page.
pub(crate) async fn register(
    session: &mut dyn SqlSession,
    page: &MailboxPage,
) -> Result<RegistrationResult, StoreError> {
    check(page)?;
    let state = cursor::lock(session, &page.key).await?;
    if state.is_none_or(|state| state.cursor != page.seen) {
        return Ok(RegistrationResult::Stale);
    }
    let new = new_ones(session, page).await?;
    insert(session, page, &new).await?;
    let to = page.to;
    let moved = values![to.uid_validity, to.last_uid, to.not_before, to.old_through, page.uid_next];
    session.execute(MOVE, [moved, key_of(&page.key)].concat()).await?;
    let known = page.mails.len() - new.len();
    Ok(RegistrationResult::Done { new: count(new.len()), known: count(known) })
}

fn count(mails: usize) -> u32 {
    u32::try_from(mails).unwrap_or(u32::MAX)
}

async fn new_ones<'p>(
    session: &mut dyn SqlSession,
    page: &'p MailboxPage,
) -> Result<Vec<&'p NewInbound>, StoreError> {
    let digests: Vec<[u8; 32]> = page.mails.iter().filter_map(|mail| mail.digest).collect();
    let mut seen: HashSet<[u8; 32]> = HashSet::with_capacity(digests.len());
    for (sql, run) in SEEN.runs(&digests) {
        let place = [key_of(&page.key), run.iter().map(Value::from).collect()].concat();
        for row in session.rows(sql.into(), place).await? {
            seen.insert(row.id32(0)?);
        }
    }
    let unread = page.mails.iter().filter(|mail| mail.digest.is_none());
    let unread: HashSet<(&str, u32)> = unread.map(|mail| (mail.folder.as_str(), mail.imap_uid)).collect();
    let mut placed: HashSet<(&str, u32)> = HashSet::new();
    for folder in unread.iter().map(|(folder, _)| *folder).collect::<HashSet<_>>() {
        let uids: Vec<u32> = unread.iter().filter(|(of, _)| *of == folder).map(|(_, uid)| *uid).collect();
        for (sql, run) in AT_PLACE.runs(&uids) {
            let place = [key_of(&page.key), values![page.to.uid_validity, folder]].concat();
            let place = place.into_iter().chain(run.iter().copied().map(Value::from)).collect();
            for row in session.rows(sql.into(), place).await? {
                placed.insert((folder, row.u32(0)?));
            }
        }
    }
    let mut new = Vec::with_capacity(page.mails.len());
    for mail in &page.mails {
        let is_new = match mail.digest {
            Some(digest) => seen.insert(digest),
            None => placed.insert((mail.folder.as_str(), mail.imap_uid)),
        };
        if is_new {
            new.push(mail);
        }
    }
    Ok(new)
}

async fn insert(
    session: &mut dyn SqlSession,
    page: &MailboxPage,
    new: &[&NewInbound],
) -> Result<(), StoreError> {
    let digests: Vec<[u8; 32]> = new.iter().filter_map(|mail| mail.digest).collect();
    for (sql, run) in SEE.runs(&digests) {
        let row = |digest: &[u8; 32]| [key_of(&page.key), values![digest]].concat();
        session.execute(sql.into(), run.iter().flat_map(row).collect()).await?;
    }
    for (sql, run) in INSERT.runs(new) {
        let row = |mail: &&NewInbound| {
            let is_settled = mail.state.is_settled();
            values![
                mail.uid.as_bytes(),
                page.key.tenant.as_str(),
                page.key.mailbox.as_str(),
                mail.folder.as_str(),
                page.to.uid_validity,
                mail.imap_uid,
                mail.digest.map(|digest| digest.to_vec()),
                i64::try_from(mail.size).unwrap_or(i64::MAX),
                mail.arrived_at,
                mail.dated_at,
                mail.sender.as_deref(),
                mail.recipients.as_deref(),
                mail.subject.as_deref(),
                mail.message_id.as_deref(),
                mail.state.code(),
                (!is_settled).then_some(page.at),
                mail.error.as_deref(),
                page.at,
                page.at,
                is_settled.then_some(page.at),
            ]
        };
        session.execute(sql.into(), run.iter().flat_map(row).collect()).await?;
    }
    let bodies: Vec<_> = new.iter().filter_map(|mail| Some((mail.uid, mail.body.as_ref()?))).collect();
    for (sql, run) in parts(&bodies, |(_, body)| body).flat_map(|part| INSERT_BODY.runs(part)) {
        let row = |(uid, body): &(MessageUid, &StoredBody)| [values![uid.as_bytes()], stored(body)].concat();
        session.execute(sql.into(), run.iter().flat_map(row).collect()).await?;
    }
    Ok(())
}

/// Runs of rows whose bytes go into one statement.
pub(crate) fn parts<T>(rows: &[T], body: impl Fn(&T) -> &StoredBody) -> impl Iterator<Item = &[T]> {
    let bytes_of = move |row: &T| body(row).inline().map_or(0, |bytes| bytes.len() as u64);
    let mut bytes = rows.first().map_or(0, &bytes_of);
    rows.chunk_by(move |_, next| {
        bytes += bytes_of(next);
        let fits = bytes <= INSERT_BYTES_MAX;
        if !fits {
            bytes = bytes_of(next);
        }
        fits
    })
}

/// The columns `size`, `raw` and `raw_blob`.
pub(crate) fn stored(body: &StoredBody) -> Vec<Value> {
    values![
        i64::try_from(body.len()).unwrap_or(i64::MAX),
        body.inline().map(|bytes| bytes.to_vec()).unwrap_or_default(),
        body.blob().map(|blob| blob.name.to_string()),
    ]
}
