//! Watched mailboxes.
//!
//! A deleted mailbox is not visible any more. Its mail may be much, so it is removed slice by slice, and the
//! mailbox's state with the last slice.

use aws_lc_rs::digest;
use postway_domain::{TenantId, WatchedMailbox, mailbox::MailboxSettings, secret::SealedSecret};

use super::{cursor, hold_names, removal};
use crate::{
    error::StoreError,
    record::{ChangeResult, MailboxKey, MailboxState},
    sql::{Row, SqlSession, SqlText, Value, values, was_there},
};

macro_rules! insert {
    ($end:literal) => {
        concat!(
            "INSERT INTO mailbox (tenant, id, place, port, settings, secret, version, created_at, updated_at) ",
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            $end
        )
    };
}
macro_rules! select {
    ($end:literal) => {
        concat!("SELECT tenant, id, settings, secret, version, created_at, updated_at FROM mailbox", $end)
    };
}
const CREATE: SqlText = SqlText::or_mysql(insert!(" ON CONFLICT DO NOTHING"), insert!(""));
const BEGIN: SqlText = SqlText::same("INSERT INTO mailbox_state (tenant, mailbox, deleted) VALUES (?, ?, 0)");
const UPDATE: SqlText = SqlText::same(
    "UPDATE mailbox SET place = ?, port = ?, settings = ?, secret = ?, version = ?, updated_at = ? \
     WHERE tenant = ? AND id = ? AND version = ?",
);
const PLACE: SqlText = SqlText::same("SELECT place FROM mailbox WHERE tenant = ? AND id = ?");
const AT_PLACE: SqlText =
    SqlText::same("SELECT id FROM mailbox WHERE tenant = ? AND place = ? AND port = ? AND id <> ?");
const DELETE: SqlText = SqlText::same("DELETE FROM mailbox WHERE tenant = ? AND id = ?");
const DELETE_RULES: SqlText = SqlText::same("DELETE FROM rule WHERE tenant = ? AND mailbox = ?");
const START_OVER: SqlText = SqlText::same(
    "UPDATE mailbox_state SET uid_validity = NULL, last_uid = NULL, not_before = NULL, old_through = NULL, uid_next = NULL, \
     scanned_at = NULL, error = NULL, error_since = NULL WHERE tenant = ? AND mailbox = ?",
);
const MARK: SqlText =
    SqlText::same("UPDATE mailbox_state SET deleted = 1 WHERE tenant = ? AND mailbox = ? AND deleted = 0");
const MARKED: SqlText = SqlText::same("SELECT tenant, mailbox FROM mailbox_state WHERE deleted = 1");
const MARKED_ONE: SqlText =
    SqlText::same("SELECT tenant FROM mailbox_state WHERE deleted = 1 AND tenant = ? AND mailbox = ?");
const END: SqlText =
    SqlText::same("DELETE FROM mailbox_state WHERE tenant = ? AND mailbox = ? AND deleted = 1");
const FIND: SqlText = SqlText::same(select!(" WHERE tenant = ? AND id = ?"));
const OF_TENANT: SqlText = SqlText::same(select!(" WHERE tenant = ? ORDER BY id"));
const ALL: SqlText = SqlText::same(select!(
    " WHERE tenant IN (SELECT t.id FROM tenant t WHERE t.deleted_at IS NULL) ORDER BY tenant, id"
));
#[cfg(test)]
pub(crate) const STATEMENTS: &[SqlText] = &[
    CREATE,
    BEGIN,
    UPDATE,
    PLACE,
    AT_PLACE,
    DELETE,
    DELETE_RULES,
    START_OVER,
    MARK,
    MARKED,
    MARKED_ONE,
    END,
    FIND,
    OF_TENANT,
    ALL,
];

/// The location of a mailbox: server, username and folder, or the addresses that it has at the reception. Server names ignore case. Together with the port
/// the location is unique. By itself it says whether a mailbox has moved: the end of a tunnel may get another
/// port, and its mail stays the same.
pub(crate) fn place_of(settings: &MailboxSettings) -> [u8; 32] {
    let mut hash = digest::Context::new(&digest::SHA256);
    let folder = [&settings.host.to_ascii_lowercase(), &settings.username, &settings.folder];
    for part in folder.into_iter().chain(&settings.addresses) {
        hash.update(&(part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    let mut place = [0; 32];
    place.copy_from_slice(hash.finish().as_ref());
    place
}

fn settings_json(mailbox: &WatchedMailbox) -> Result<String, StoreError> {
    serde_json::to_string(&mailbox.settings).map_err(|error| StoreError::Unexpected(error.to_string()))
}

fn sealed(mailbox: &WatchedMailbox) -> Option<Vec<u8>> {
    mailbox.secret.as_ref().map(|sealed| sealed.0.clone())
}

pub(crate) fn key_of(key: &MailboxKey) -> Vec<Value> {
    values![key.tenant.as_str(), key.mailbox.as_str()]
}

/// Creates a mailbox; `Exists` if its id, or its location and port, are taken.
pub(crate) async fn create(
    session: &mut dyn SqlSession,
    new: &WatchedMailbox,
) -> Result<ChangeResult, StoreError> {
    hold_names(session, &new.tenant).await?;
    let values = values![
        new.tenant.as_str(),
        new.id.as_str(),
        &place_of(&new.settings),
        i64::from(new.settings.port),
        settings_json(new)?,
        sealed(new),
        new.version,
        new.created_at,
        new.updated_at,
    ];
    if !session.insert(CREATE, values).await? {
        return Ok(ChangeResult::Exists);
    }
    let key = MailboxKey { tenant: new.tenant.clone(), mailbox: new.id.clone() };
    // The mail of an earlier mailbox with this name must not count as this one's.
    if !session.rows(MARKED_ONE, key_of(&key)).await?.is_empty() {
        while !removal::mailbox_slice(session, &key).await? {}
        session.execute(END, key_of(&key)).await?;
    }
    session.execute(BEGIN, key_of(&key)).await?;
    Ok(ChangeResult::Done)
}

/// Replaces a mailbox if its stored version is `expected`. If its location changes, it is read from its
/// start.
pub(crate) async fn update(
    session: &mut dyn SqlSession,
    new: &WatchedMailbox,
    expected: i64,
) -> Result<ChangeResult, StoreError> {
    hold_names(session, &new.tenant).await?;
    let key = MailboxKey { tenant: new.tenant.clone(), mailbox: new.id.clone() };
    let place = place_of(&new.settings);
    let port = i64::from(new.settings.port);
    let others = values![new.tenant.as_str(), &place, port, new.id.as_str()];
    if !session.rows(AT_PLACE, others).await?.is_empty() {
        return Ok(ChangeResult::Exists);
    }
    let before = session.rows(PLACE, key_of(&key)).await?;
    let before = before.first().map(|row| row.id32(0)).transpose()?;
    let values = values![
        &place,
        port,
        settings_json(new)?,
        sealed(new),
        new.version,
        new.updated_at,
        new.tenant.as_str(),
        new.id.as_str(),
        expected,
    ];
    if session.execute(UPDATE, values).await? != 1 {
        return Ok(ChangeResult::Stale);
    }
    if before != Some(place) {
        session.execute(START_OVER, key_of(&key)).await?;
    }
    Ok(ChangeResult::Done)
}

/// Deletes a mailbox with its rules and its mail.
pub(crate) async fn delete(
    session: &mut dyn SqlSession,
    key: &MailboxKey,
) -> Result<ChangeResult, StoreError> {
    // The state first: registering a page locks it.
    let marked = session.execute(MARK, key_of(key)).await.map(was_there)?;
    if marked == ChangeResult::Done {
        session.execute(DELETE, key_of(key)).await?;
        session.execute(DELETE_RULES, key_of(key)).await?;
        forget_one(session, key).await?;
    }
    Ok(marked)
}

/// Continues to remove deleted mailboxes.
pub(crate) async fn forget(session: &mut dyn SqlSession) -> Result<(), StoreError> {
    for row in session.rows(MARKED, Vec::new()).await? {
        forget_one(session, &MailboxKey { tenant: row.parsed(0)?, mailbox: row.parsed(1)? }).await?;
    }
    Ok(())
}

async fn forget_one(session: &mut dyn SqlSession, key: &MailboxKey) -> Result<(), StoreError> {
    if removal::mailbox_slice(session, key).await? {
        session.execute(END, key_of(key)).await?;
    }
    Ok(())
}

pub(crate) async fn list(
    session: &mut dyn SqlSession,
    tenant: Option<&TenantId>,
) -> Result<Vec<WatchedMailbox>, StoreError> {
    let rows = match tenant {
        Some(tenant) => session.rows(OF_TENANT, values![tenant.as_str()]).await?,
        None => session.rows(ALL, Vec::new()).await?,
    };
    rows.iter().map(read).collect()
}

pub(crate) async fn find(
    session: &mut dyn SqlSession,
    key: &MailboxKey,
) -> Result<Option<(WatchedMailbox, MailboxState)>, StoreError> {
    let mailbox = session.rows(FIND, key_of(key)).await?.first().map(read).transpose()?;
    let state = cursor::find(session, key).await?;
    Ok(mailbox.zip(state))
}

fn read(row: &Row) -> Result<WatchedMailbox, StoreError> {
    Ok(WatchedMailbox {
        tenant: row.parsed(0)?,
        id: row.parsed(1)?,
        settings: row.json(2)?,
        secret: row.opt_bytes(3)?.map(|bytes| SealedSecret(bytes.to_vec())),
        version: row.int(4)?,
        created_at: row.time(5)?,
        updated_at: row.time(6)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(host: &str, username: &str, folder: &str) -> MailboxSettings {
        let json = serde_json::json!({
            "host": host, "port": 993, "tls": "implicit", "username": username, "folder": folder, "roles": ["forward"],
            "active": true, "poll_seconds": 60, "start": "now", "attempts_max": 3
        });
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn a_place_is_its_three_parts_and_a_host_has_no_case() {
        let place = |host, username, folder| place_of(&settings(host, username, folder));
        assert_eq!(place("mail.Example.org", "ann", "INBOX"), place("mail.example.org", "ann", "INBOX"));
        for other in [
            place("mail.example.org", "Ann", "INBOX"),
            place("mail.example.org", "ann", "Inbox"),
            place("mail.example.org", "annI", "NBOX"),
            place("imap.example.org", "ann", "INBOX"),
        ] {
            assert_ne!(other, place("mail.example.org", "ann", "INBOX"));
        }
    }
}
