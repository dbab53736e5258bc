//! Known recipients: a tenant's own directory of recipients.
//!
//! An external id belongs to one entry at a time. A deleted entry keeps its row and frees its external id by
//! setting `live` to NULL, which no unique index compares.

use postway_domain::{
    EmailAddress, KnownRecipient, MailLocale, PersonalDigest, RecipientId, RecipientKey, TenantId, Time,
    secret::SealedSecret,
};

use crate::{
    error::StoreError,
    record::ChangeResult,
    sql::{Row, SqlSession, SqlText, is_new, values},
};

macro_rules! select {
    ($which:literal) => {
        select!("known_recipient", $which)
    };
    ($from:literal, $which:literal) => {
        concat!(
            "SELECT tenant, id, external_id, name, address, personal_number, personal_digest, personal_masked, \
             version, created_at, updated_at, deleted_at, locale FROM ",
            $from,
            " WHERE tenant = ? AND ",
            $which
        )
    };
}

const CREATE: SqlText = SqlText::or_mysql(
    "INSERT INTO known_recipient (tenant, id, external_id, live, name, address, personal_number, personal_digest, \
     personal_masked, version, created_at, updated_at, deleted_at, locale) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) \
     ON CONFLICT DO NOTHING",
    "INSERT INTO known_recipient (tenant, id, external_id, live, name, address, personal_number, personal_digest, \
     personal_masked, version, created_at, updated_at, deleted_at, locale) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
);
const RESERVE: SqlText = SqlText::or_mysql(
    "INSERT INTO known_recipient (tenant, id, external_id, live, address, version, created_at, updated_at) \
     VALUES (?, ?, ?, 1, '', 0, 0, 0) ON CONFLICT DO NOTHING",
    "INSERT INTO known_recipient (tenant, id, external_id, live, address, version, created_at, updated_at) \
     VALUES (?, ?, ?, 1, '', 0, 0, 0)",
);
const UNRESERVE: SqlText = SqlText::same("DELETE FROM known_recipient WHERE tenant = ? AND id = ?");
const HOLDER: SqlText =
    SqlText::same("SELECT id FROM known_recipient WHERE tenant = ? AND external_id = ? AND live = 1");
const UPDATE: SqlText = SqlText::same(
    "UPDATE known_recipient SET external_id = ?, name = ?, address = ?, personal_number = ?, personal_digest = ?, \
     personal_masked = ?, version = ?, updated_at = ?, locale = ? WHERE tenant = ? AND id = ? AND version = ? AND live = 1",
);
// Personal numbers cannot be requested any more; the ones stored earlier are still shown.
const DELETE: SqlText = SqlText::same(
    "UPDATE known_recipient SET live = NULL, personal_number = NULL, personal_digest = NULL, deleted_at = ?, \
     updated_at = ?, version = version + 1 WHERE tenant = ? AND id = ? AND live = 1",
);
const IS_THERE: SqlText = SqlText::same("SELECT id FROM known_recipient WHERE tenant = ? AND id = ?");
const BY_ID: SqlText = SqlText::same(select!("id = ?"));
pub(crate) const BY_EXTERNAL: SqlText = SqlText::same(select!("external_id = ? AND live = 1"));
/// The deleted entry that had the external id last.
pub(crate) const DELETED_BY_EXTERNAL: SqlText =
    SqlText::same(select!("external_id = ? AND live IS NULL ORDER BY deleted_at DESC LIMIT 1"));
/// SQLite, which has no statistics, would estimate ten rows for a tenant and read them all.
pub(crate) const BY_PERSONAL: SqlText = SqlText::of_each(
    select!(
        "known_recipient INDEXED BY known_recipient_personal",
        "personal_digest = ? AND live = 1 ORDER BY id LIMIT 1"
    ),
    select!("personal_digest = ? AND live = 1 ORDER BY id LIMIT 1"),
    select!("personal_digest = ? AND live = 1 ORDER BY id LIMIT 1"),
);
pub(crate) const LIST: SqlText = SqlText::same(select!("id > ? AND live = 1 ORDER BY id LIMIT ?"));
/// The collations of SQLite's and MySQL's columns ignore case, and MySQL's ignores accents, too.
pub(crate) const LIST_OF_ADDRESS: SqlText = SqlText::of_each(
    select!(
        "known_recipient INDEXED BY known_recipient_address",
        "address = ? AND id > ? AND live = 1 ORDER BY id LIMIT ?"
    ),
    select!("lower(address) = ? AND id > ? AND live = 1 ORDER BY id LIMIT ?"),
    select!("address = ? AND id > ? AND live = 1 ORDER BY id LIMIT ?"),
);
#[cfg(test)]
pub(crate) const STATEMENTS: &[SqlText] = &[
    CREATE,
    RESERVE,
    UNRESERVE,
    HOLDER,
    UPDATE,
    DELETE,
    IS_THERE,
    BY_ID,
    BY_EXTERNAL,
    DELETED_BY_EXTERNAL,
    BY_PERSONAL,
    LIST,
    LIST_OF_ADDRESS,
];

/// The placeholder row that reserves an external id. No UUID of ours is all ones.
const PLACEHOLDER: [u8; 16] = [0xff; 16];

pub(crate) async fn create(
    session: &mut dyn SqlSession,
    recipient: &KnownRecipient,
) -> Result<ChangeResult, StoreError> {
    let values = values![
        recipient.tenant.as_str(),
        recipient.id.as_bytes(),
        recipient.external_id.as_deref(),
        recipient.deleted_at.is_none().then_some(1_i64),
        recipient.name.as_deref(),
        recipient.address.as_str(),
        recipient.personal_number.as_ref().map(|sealed| sealed.0.clone()),
        recipient.personal_number_digest.map(|digest| digest.0.to_vec()),
        recipient.personal_number_masked.as_deref(),
        recipient.version,
        recipient.created_at,
        recipient.updated_at,
        recipient.deleted_at,
        recipient.locale.as_ref().map(MailLocale::as_str),
    ];
    session.insert(CREATE, values).await.map(is_new)
}

pub(crate) async fn update(
    session: &mut dyn SqlSession,
    recipient: &KnownRecipient,
    expected: i64,
) -> Result<ChangeResult, StoreError> {
    if let Some(external_id) = recipient.external_id.as_deref()
        && !take(session, &recipient.tenant, external_id, &recipient.id).await?
    {
        return Ok(ChangeResult::Exists);
    }
    let values = values![
        recipient.external_id.as_deref(),
        recipient.name.as_deref(),
        recipient.address.as_str(),
        recipient.personal_number.as_ref().map(|sealed| sealed.0.clone()),
        recipient.personal_number_digest.map(|digest| digest.0.to_vec()),
        recipient.personal_number_masked.as_deref(),
        recipient.version,
        recipient.updated_at,
        recipient.locale.as_ref().map(MailLocale::as_str),
        recipient.tenant.as_str(),
        recipient.id.as_bytes(),
        expected,
    ];
    Ok(if session.execute(UPDATE, values).await? == 1 { ChangeResult::Done } else { ChangeResult::Stale })
}

/// Whether an entry may have this external id. On PostgreSQL an update that violates a unique index aborts
/// the transaction, but an insert can be ignored. So a placeholder is inserted first, and a concurrent
/// transaction that wants the same id waits for it.
async fn take(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    external_id: &str,
    id: &RecipientId,
) -> Result<bool, StoreError> {
    if let Some(holder) = session.rows(HOLDER, values![tenant.as_str(), external_id]).await?.first() {
        return Ok(holder.id16(0)? == *id.as_bytes());
    }
    let taken = session.insert(RESERVE, values![tenant.as_str(), &PLACEHOLDER, external_id]).await?;
    if taken {
        session.execute(UNRESERVE, values![tenant.as_str(), &PLACEHOLDER]).await?;
    }
    Ok(taken)
}

pub(crate) async fn delete(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    id: &RecipientId,
    at: Time,
) -> Result<ChangeResult, StoreError> {
    if session.execute(DELETE, values![at, at, tenant.as_str(), id.as_bytes()]).await? == 1 {
        return Ok(ChangeResult::Done);
    }
    let found = session.rows(IS_THERE, values![tenant.as_str(), id.as_bytes()]).await?;
    Ok(if found.is_empty() { ChangeResult::Missing } else { ChangeResult::Already })
}

pub(crate) async fn find(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    key: &RecipientKey,
) -> Result<Option<KnownRecipient>, StoreError> {
    let tenant = tenant.as_str();
    let rows = match key {
        RecipientKey::Id(id) => session.rows(BY_ID, values![tenant, id.as_bytes()]).await?,
        RecipientKey::External(id) => {
            let live = session.rows(BY_EXTERNAL, values![tenant, id.as_str()]).await?;
            match live.is_empty() {
                true => session.rows(DELETED_BY_EXTERNAL, values![tenant, id.as_str()]).await?,
                false => live,
            }
        }
        RecipientKey::Personal(digest) => session.rows(BY_PERSONAL, values![tenant, &digest.0]).await?,
    };
    rows.first().map(read).transpose()
}

pub(crate) async fn list(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    address: Option<&str>,
    after: Option<RecipientId>,
    limit: u32,
) -> Result<Vec<KnownRecipient>, StoreError> {
    let after = after.map_or([0; 16], |id| *id.as_bytes());
    let Some(address) = address else {
        let values = values![tenant.as_str(), &after, limit];
        return session.rows(LIST, values).await?.iter().map(read).collect();
    };
    let mut listed = Vec::new();
    // Entries written by earlier versions have domains as U-labels.
    for spelling in EmailAddress::spellings_of(address) {
        listed.extend(list_of(session, tenant, &spelling, after, limit).await?);
    }
    listed.sort_by_key(|one| *one.id.as_bytes());
    listed.truncate(limit as usize);
    Ok(listed)
}

async fn list_of(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    address: &str,
    mut after: [u8; 16],
    limit: u32,
) -> Result<Vec<KnownRecipient>, StoreError> {
    let mut listed = Vec::new();
    loop {
        let wanted = limit - listed.len() as u32;
        let values = values![tenant.as_str(), address.to_ascii_lowercase(), &after, wanted];
        let rows = session.rows(LIST_OF_ADDRESS, values).await?;
        for row in &rows {
            let found = read(row)?;
            after = *found.id.as_bytes();
            // A database may consider more addresses equal than we do.
            if found.address.eq_ignore_ascii_case(address) {
                listed.push(found);
            }
        }
        if rows.len() < wanted as usize || listed.len() == limit as usize {
            return Ok(listed);
        }
    }
}

fn read(row: &Row) -> Result<KnownRecipient, StoreError> {
    let text = |index| Ok::<_, StoreError>(row.opt_text(index)?.map(ToOwned::to_owned));
    let not_a_digest = |_| StoreError::Unexpected("a personal number's digest that is not 32 bytes".into());
    let digest = row.opt_bytes(6)?.map(<[u8; 32]>::try_from).transpose().map_err(not_a_digest)?;
    Ok(KnownRecipient {
        tenant: row.parsed(0)?,
        id: RecipientId::from_bytes(row.id16(1)?),
        external_id: text(2)?,
        name: text(3)?,
        address: row.text(4)?.to_owned(),
        personal_number: row.opt_bytes(5)?.map(|bytes| SealedSecret(bytes.to_vec())),
        personal_number_digest: digest.map(PersonalDigest),
        personal_number_masked: text(7)?,
        version: row.int(8)?,
        created_at: row.time(9)?,
        updated_at: row.time(10)?,
        deleted_at: row.opt_time(11)?,
        locale: row.opt_parsed(12)?,
    })
}
