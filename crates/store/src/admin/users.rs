//! Users. The last one who may do everything stays: a change that would leave none is refused, also when two
//! admins remove each other at the same moment on two nodes.

use postway_domain::{
    User, UserName, UserRole, UserTenants,
    id::UserId,
    user::{UserCredentials, UserIdentity},
};

use super::user_sessions;
use crate::{
    error::StoreError,
    record::{ChangeResult, UserKey},
    sql::{Row, SqlSession, SqlText, values, was_there},
};

macro_rules! insert {
    ($end:literal) => {
        concat!(
            "INSERT INTO gateway_user (id, name, display_name, email, role, tenants, read_content, issuer, subject, ",
            "credentials, disabled_at, created_at, updated_at, version) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            $end
        )
    };
}
macro_rules! select {
    ($end:literal) => {
        concat!(
            "SELECT id, name, display_name, email, role, tenants, read_content, issuer, subject, credentials, disabled_at, ",
            "created_at, updated_at, version FROM gateway_user ",
            $end
        )
    };
}
/// The users who may do everything; the role is that of an admin.
macro_rules! full_admins {
    ($end:literal) => {
        concat!(
            "SELECT id FROM gateway_user WHERE role = 4 AND tenants IS NULL AND disabled_at IS NULL ORDER BY id",
            $end
        )
    };
}

const CREATE: SqlText = SqlText::or_mysql(insert!(" ON CONFLICT DO NOTHING"), insert!(""));
/// The name never changes. An identity may be taken by another user, which is not an error of the database's.
const UPDATE: SqlText = SqlText::same(
    "UPDATE gateway_user SET display_name = ?, email = ?, role = ?, tenants = ?, read_content = ?, issuer = ?, \
     subject = ?, credentials = ?, disabled_at = ?, updated_at = ?, version = ? WHERE id = ? AND version = ?",
);
const DELETE: SqlText = SqlText::same("DELETE FROM gateway_user WHERE id = ?");
/// Servers lock them in one order, so that of two changes the second sees what the first has left.
const FULL_ADMINS: SqlText =
    SqlText::of_each(full_admins!(""), full_admins!(" FOR UPDATE"), full_admins!(" FOR UPDATE"));
const FIND: SqlText = SqlText::same(select!("WHERE id = ?"));
const FIND_BY_NAME: SqlText = SqlText::same(select!("WHERE name = ?"));
const FIND_BY_IDENTITY: SqlText = SqlText::same(select!("WHERE issuer = ? AND subject = ?"));
const FIND_BY_EMAIL: SqlText = SqlText::same(select!("WHERE email = ? ORDER BY id LIMIT 2"));
const LIST: SqlText = SqlText::same(select!("WHERE name > ? ORDER BY name LIMIT ?"));
#[cfg(test)]
pub(crate) const STATEMENTS: &[SqlText] =
    &[CREATE, UPDATE, DELETE, FULL_ADMINS, FIND, FIND_BY_NAME, FIND_BY_IDENTITY, FIND_BY_EMAIL, LIST];

pub(crate) async fn create(session: &mut dyn SqlSession, user: &User) -> Result<ChangeResult, StoreError> {
    if is_identity_taken(session, user).await? {
        return Ok(ChangeResult::Exists);
    }
    let values = values![
        user.id.as_bytes(),
        user.name.as_str(),
        user.display_name.as_str(),
        user.email.as_deref(),
        user.role.code(),
        written_tenants(&user.tenants)?,
        i64::from(user.read_content),
        user.identity.as_ref().map(|identity| identity.issuer.as_str()),
        user.identity.as_ref().map(|identity| identity.subject.as_str()),
        written(&user.credentials)?,
        user.disabled_at,
        user.created_at,
        user.updated_at,
        user.version,
    ];
    let created = session.insert(CREATE, values).await?;
    Ok(if created { ChangeResult::Done } else { ChangeResult::Exists })
}

/// Replaces a user. [`ChangeResult::InUse`] if nobody would be left who may do everything.
pub(crate) async fn update(
    session: &mut dyn SqlSession,
    user: &User,
    expected: i64,
) -> Result<ChangeResult, StoreError> {
    if !user.is_full_admin() && is_last_admin(session, user.id).await? {
        return Ok(ChangeResult::InUse);
    }
    if is_identity_taken(session, user).await? {
        return Ok(ChangeResult::Exists);
    }
    let values = values![
        user.display_name.as_str(),
        user.email.as_deref(),
        user.role.code(),
        written_tenants(&user.tenants)?,
        i64::from(user.read_content),
        user.identity.as_ref().map(|identity| identity.issuer.as_str()),
        user.identity.as_ref().map(|identity| identity.subject.as_str()),
        written(&user.credentials)?,
        user.disabled_at,
        user.updated_at,
        user.version,
        user.id.as_bytes(),
        expected,
    ];
    if session.execute(UPDATE, values).await? != 1 {
        return Ok(ChangeResult::Stale);
    }
    if user.disabled_at.is_some() {
        user_sessions::end_of_user(session, user.id).await?;
    }
    Ok(ChangeResult::Done)
}

/// Deletes a user with its sessions. [`ChangeResult::InUse`] if it is the last who may do everything.
pub(crate) async fn delete(session: &mut dyn SqlSession, id: UserId) -> Result<ChangeResult, StoreError> {
    if is_last_admin(session, id).await? {
        return Ok(ChangeResult::InUse);
    }
    user_sessions::end_of_user(session, id).await?;
    session.execute(DELETE, values![id.as_bytes()]).await.map(was_there)
}

/// Whether this is the only user who may do everything.
async fn is_last_admin(session: &mut dyn SqlSession, id: UserId) -> Result<bool, StoreError> {
    let admins = session.rows(FULL_ADMINS, values![]).await?;
    Ok(matches!(admins.as_slice(), [only] if only.id16(0)? == *id.as_bytes()))
}

/// Whether another user has the identity. Two that take it at once are refused by the index.
async fn is_identity_taken(session: &mut dyn SqlSession, user: &User) -> Result<bool, StoreError> {
    let Some(identity) = &user.identity else { return Ok(false) };
    let values = values![identity.issuer.as_str(), identity.subject.as_str()];
    let found = session.rows(FIND_BY_IDENTITY, values).await?;
    found.iter().try_fold(false, |taken, row| Ok(taken || row.id16(0)? != *user.id.as_bytes()))
}

pub(crate) async fn find(session: &mut dyn SqlSession, key: &UserKey) -> Result<Option<User>, StoreError> {
    let rows = match key {
        UserKey::Id(id) => session.rows(FIND, values![id.as_bytes()]).await?,
        UserKey::Name(name) => session.rows(FIND_BY_NAME, values![name.as_str()]).await?,
        UserKey::Identity(UserIdentity { issuer, subject }) => {
            session.rows(FIND_BY_IDENTITY, values![issuer.as_str(), subject.as_str()]).await?
        }
        UserKey::Email(email) => session.rows(FIND_BY_EMAIL, values![email.as_str()]).await?,
    };
    match rows.as_slice() {
        [only] => read(only).map(Some),
        // An address that several users have names none of them.
        _ => Ok(None),
    }
}

pub(crate) async fn list(
    session: &mut dyn SqlSession,
    after: Option<&UserName>,
    limit: u32,
) -> Result<Vec<User>, StoreError> {
    let values = values![after.map_or("", UserName::as_str), limit];
    session.rows(LIST, values).await?.iter().map(read).collect()
}

/// From the columns that [`select!`] names.
fn read(row: &Row) -> Result<User, StoreError> {
    let wrong = || StoreError::Unexpected("a stored user that does not read".into());
    let identity = match (row.opt_string(7)?, row.opt_string(8)?) {
        (Some(issuer), Some(subject)) => Some(UserIdentity { issuer, subject }),
        _ => None,
    };
    Ok(User {
        id: UserId::from_bytes(row.id16(0)?),
        name: row.parsed(1)?,
        display_name: row.text(2)?.to_owned(),
        email: row.opt_string(3)?,
        role: UserRole::from_code(row.int(4)?).ok_or_else(wrong)?,
        tenants: match row.opt_text(5)? {
            None => UserTenants::All,
            Some(_) => UserTenants::Named(row.json(5)?),
        },
        read_content: row.int(6)? != 0,
        identity,
        credentials: row.json(9)?,
        disabled_at: row.opt_time(10)?,
        created_at: row.time(11)?,
        updated_at: row.time(12)?,
        version: row.int(13)?,
    })
}

/// The named tenants as JSON; NULL means all of them.
fn written_tenants(tenants: &UserTenants) -> Result<Option<String>, StoreError> {
    match tenants {
        UserTenants::All => Ok(None),
        UserTenants::Named(named) => as_json(named).map(Some),
    }
}

fn written(credentials: &UserCredentials) -> Result<String, StoreError> {
    as_json(credentials)
}

fn as_json(value: &impl serde::Serialize) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|error| StoreError::Unexpected(error.to_string()))
}
