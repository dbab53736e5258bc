//! Subscribers.
//!
//! A tenant's `client_sync` and its archive are among them and follow the tenant's settings, in the same
//! transaction. A deleted subscriber is not visible any more. Its notifications may be many, so they are removed slice by
//! slice, and its row with the last slice.

use postway_domain::{
    EventKind, Subscriber, SubscriberKind, Tenant, TenantId, Time,
    id::SubscriberId,
    secret::SealedSecret,
    subscriber::{EventFilter, event_name},
    tenant::CallbackForm,
};

use crate::{
    error::StoreError,
    record::ChangeResult,
    sql::{Row, SqlSession, SqlText, decode, is_new, values, was_there},
};

/// Roughly the number of notifications of a deleted subscriber that are removed at once.
const DROPPED_AT_ONCE: i64 = 5_000;

macro_rules! select {
    ($end:literal) => {
        concat!(
            "SELECT tenant, id, kind, url, events, secrets, active, disabled_reason, description, quiet_until, version, ",
            "created_at, updated_at FROM subscriber WHERE deleted = 0 ",
            $end
        )
    };
}

macro_rules! insert {
    ($end:literal) => {
        concat!(
            "INSERT INTO subscriber (tenant, id, kind, url, events, secrets, active, disabled_reason, description, ",
            "quiet_until, deleted, version, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?)",
            $end
        )
    };
}

const CREATE: SqlText = SqlText::or_mysql(insert!(" ON CONFLICT DO NOTHING"), insert!(""));
const UPDATE: SqlText = SqlText::same(
    "UPDATE subscriber SET kind = ?, url = ?, events = ?, secrets = ?, active = ?, disabled_reason = ?, description = ?, \
     quiet_until = ?, version = ?, updated_at = ? WHERE tenant = ? AND id = ? AND version = ? AND deleted = 0",
);
const QUIET: SqlText =
    SqlText::same("UPDATE subscriber SET quiet_until = ? WHERE tenant = ? AND id = ? AND deleted = 0");
const KEEP: SqlText = SqlText::same(
    "UPDATE subscriber SET kind = ?, active = 1, disabled_reason = NULL, version = version + 1, \
     updated_at = ? WHERE tenant = ? AND id = ? AND deleted = 0",
);
const MARK: SqlText = SqlText::same(
    "UPDATE subscriber SET deleted = 1, active = 0, secrets = NULL WHERE tenant = ? AND id = ? AND deleted = 0",
);
const MARKED: SqlText = SqlText::same("SELECT tenant, id FROM subscriber WHERE deleted = 1");
const REMOVE: SqlText = SqlText::same("DELETE FROM subscriber WHERE tenant = ? AND id = ? AND deleted = 1");
/// The message where a slice ends.
const SLICE: SqlText = SqlText::same(
    "SELECT uid FROM notification WHERE tenant = ? AND subscriber = ? ORDER BY uid, seq LIMIT 1 OFFSET ?",
);
const DROP: SqlText =
    SqlText::same("DELETE FROM notification WHERE tenant = ? AND subscriber = ? AND uid <= ?");
const FIND: SqlText = SqlText::same(select!("AND tenant = ? AND id = ?"));
const LIST: SqlText = SqlText::same(select!("AND tenant = ? ORDER BY id"));
const LIST_ALL: SqlText = SqlText::same(select!("ORDER BY tenant, id"));
#[cfg(test)]
pub(crate) const STATEMENTS: &[SqlText] =
    &[CREATE, UPDATE, QUIET, KEEP, MARK, MARKED, REMOVE, SLICE, DROP, FIND, LIST, LIST_ALL];

fn events_json(subscriber: &Subscriber) -> Result<String, StoreError> {
    serde_json::to_string(&subscriber.events).map_err(|error| StoreError::Unexpected(error.to_string()))
}

/// Creates a subscriber; `Exists` if its id is taken.
pub(crate) async fn create(
    session: &mut dyn SqlSession,
    new: &Subscriber,
) -> Result<ChangeResult, StoreError> {
    // The row of a deleted subscriber of the same name is replaced; notifications still open for that one go
    // to this one.
    session.execute(REMOVE, values![new.tenant.as_str(), new.id.as_str()]).await?;
    let values = values![
        new.tenant.as_str(),
        new.id.as_str(),
        new.kind.code(),
        new.url.as_str(),
        events_json(new)?,
        new.secrets.as_ref().map(|sealed| sealed.0.clone()),
        i64::from(new.active),
        new.disabled_reason.as_deref(),
        new.description.as_deref(),
        new.quiet_until,
        new.version,
        new.created_at,
        new.updated_at,
    ];
    session.insert(CREATE, values).await.map(is_new)
}

/// Replaces a subscriber if its stored version is `expected`.
pub(crate) async fn update(
    session: &mut dyn SqlSession,
    new: &Subscriber,
    expected: i64,
) -> Result<ChangeResult, StoreError> {
    let values = values![
        new.kind.code(),
        new.url.as_str(),
        events_json(new)?,
        new.secrets.as_ref().map(|sealed| sealed.0.clone()),
        i64::from(new.active),
        new.disabled_reason.as_deref(),
        new.description.as_deref(),
        new.quiet_until,
        new.version,
        new.updated_at,
        new.tenant.as_str(),
        new.id.as_str(),
        expected,
    ];
    Ok(if session.execute(UPDATE, values).await? == 1 { ChangeResult::Done } else { ChangeResult::Stale })
}

/// Sends a subscriber nothing until this time.
pub(crate) async fn quiet(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    id: &SubscriberId,
    until: Time,
) -> Result<ChangeResult, StoreError> {
    session.execute(QUIET, values![until, tenant.as_str(), id.as_str()]).await.map(was_there)
}

/// Deletes a subscriber with its open notifications.
pub(crate) async fn delete(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    id: &SubscriberId,
) -> Result<ChangeResult, StoreError> {
    let marked = session.execute(MARK, values![tenant.as_str(), id.as_str()]).await.map(was_there)?;
    if marked == ChangeResult::Done {
        drop_slice(session, tenant.as_str(), id.as_str()).await?;
    }
    Ok(marked)
}

/// Continues to remove deleted subscribers.
pub(crate) async fn forget(session: &mut dyn SqlSession) -> Result<(), StoreError> {
    for row in session.rows(MARKED, Vec::new()).await? {
        drop_slice(session, row.text(0)?, row.text(1)?).await?;
    }
    Ok(())
}

async fn drop_slice(session: &mut dyn SqlSession, tenant: &str, id: &str) -> Result<(), StoreError> {
    let rows = session.rows(SLICE, values![tenant, id, DROPPED_AT_ONCE]).await?;
    let end = rows.first().map(|row| row.id16(0)).transpose()?;
    session.execute(DROP, values![tenant, id, &end.unwrap_or([0xff; 16])]).await?;
    if end.is_none() {
        session.execute(REMOVE, values![tenant, id]).await?;
    }
    Ok(())
}

/// The events after which a copy goes to an archive. Captured mail was not sent.
const ARCHIVED: [EventKind; 2] = [EventKind::Sent, EventKind::Resolved];
/// The ids of the subscribers that settings make.
pub(crate) const OWN: [&str; 2] = [Subscriber::CLIENT, Subscriber::ARCHIVE];

/// A tenant's own subscribers, from its settings: its client, and its archive.
pub(crate) fn own_of(tenant: &Tenant) -> Vec<Subscriber> {
    let settings = &tenant.settings;
    let client = settings.client_sync.as_ref().map(|_| match settings.callback_form {
        CallbackForm::Event => SubscriberKind::Webhook,
        CallbackForm::Outbox => SubscriberKind::Callback,
        CallbackForm::Batch => SubscriberKind::Sync,
    });
    let client = client.map(|kind| (Subscriber::CLIENT, kind, EventFilter::default()));
    let archived =
        || ARCHIVED.iter().filter_map(|kind| event_name(*kind, false)).map(str::to_owned).collect();
    let archive = settings.archive.as_ref();
    let archive = archive.map(|_| (Subscriber::ARCHIVE, SubscriberKind::Archive, EventFilter(archived())));
    let subscriber = |(id, kind, events): (&str, _, _)| {
        Some(Subscriber {
            tenant: tenant.id.clone(),
            id: id.parse().ok()?,
            kind,
            url: String::new(),
            events,
            secrets: None,
            active: true,
            disabled_reason: None,
            description: None,
            quiet_until: None,
            version: 1,
            created_at: tenant.updated_at,
            updated_at: tenant.updated_at,
        })
    };
    client.into_iter().chain(archive).filter_map(subscriber).collect()
}

/// Creates, changes or deletes a tenant's own subscribers. New settings are tried even if the old ones were
/// given up, but not before the end of the quiet period that was asked for.
pub(crate) async fn keep_own(session: &mut dyn SqlSession, tenant: &Tenant) -> Result<(), StoreError> {
    let own = own_of(tenant);
    for id in OWN.iter().filter(|id| own.iter().all(|one| one.id.as_str() != **id)) {
        let id: SubscriberId = decode::parsed(id)?;
        delete(session, &tenant.id, &id).await?;
    }
    for one in own {
        let values = values![one.kind.code(), one.updated_at, one.tenant.as_str(), one.id.as_str()];
        if session.execute(KEEP, values).await? == 0 {
            create(session, &one).await?;
        }
    }
    Ok(())
}

pub(crate) async fn find(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    id: &SubscriberId,
) -> Result<Option<Subscriber>, StoreError> {
    session.rows(FIND, values![tenant.as_str(), id.as_str()]).await?.first().map(read).transpose()
}

pub(crate) async fn list(
    session: &mut dyn SqlSession,
    tenant: Option<&TenantId>,
) -> Result<Vec<Subscriber>, StoreError> {
    let rows = match tenant {
        Some(tenant) => session.rows(LIST, values![tenant.as_str()]).await?,
        None => session.rows(LIST_ALL, Vec::new()).await?,
    };
    rows.iter().map(read).collect()
}

/// From the columns that [`select!`] names.
fn read(row: &Row) -> Result<Subscriber, StoreError> {
    Ok(Subscriber {
        tenant: row.parsed(0)?,
        id: row.parsed(1)?,
        kind: decode::coded(row.int(2)?, SubscriberKind::from_code)?,
        url: row.text(3)?.to_owned(),
        events: row.json(4)?,
        secrets: row.opt_bytes(5)?.map(|bytes| SealedSecret(bytes.to_vec())),
        active: row.int(6)? != 0,
        disabled_reason: row.opt_text(7)?.map(str::to_owned),
        description: row.opt_text(8)?.map(str::to_owned),
        quiet_until: row.opt_time(9)?,
        version: row.int(10)?,
        created_at: row.time(11)?,
        updated_at: row.time(12)?,
    })
}
