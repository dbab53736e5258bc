//! Inbound mail, the same for every SQL database.
//!
//! [`mailboxes`], [`rules`] and [`contacts`] are changed like other settings, and audited. [`cursor`] says
//! how far each mailbox was read. [`register`] stores a page of mail, [`claim`] leases it, and [`settle`]
//! writes the result with all findings about sent messages ([`findings`]). Writes go through the writers and
//! share commits with everything else.

pub(crate) mod append_events;
pub(crate) mod claim;
pub(crate) mod contacts;
pub(crate) mod cursor;
pub(crate) mod domain_reports;
pub(crate) mod findings;
pub(crate) mod job;
pub(crate) mod mailboxes;
pub(crate) mod mails;
pub(crate) mod message_lookup;
pub(crate) mod reader_decisions;
pub(crate) mod receipts;
pub(crate) mod register;
pub(crate) mod removal;
pub(crate) mod rules;
pub(crate) mod settle;
pub(crate) mod turns;

#[cfg(test)]
mod tests;

use postway_domain::TenantId;

pub(crate) use findings::ends_waiting;
pub(crate) use job::{InboundAnswer, InboundJob, write};
pub(crate) use mailboxes::{forget, place_of};
pub(crate) use message_lookup::accepted_at;
pub(crate) use receipts::begin_waiting;
pub(crate) use register::check;
pub(crate) use removal::tenant_slice;
pub(crate) use settle::{NextMailState, add_tags};
pub(crate) use turns::RouteTurns;

use crate::{
    error::StoreError,
    record::{ChangeResult, DirectoryChange},
    sql::{SqlSession, SqlText, values},
};

const HOLD_NAMES: SqlText = SqlText::of_each(
    "SELECT id FROM tenant WHERE id = ?",
    "SELECT id FROM tenant WHERE id = ? FOR UPDATE",
    "SELECT id FROM tenant WHERE id = ? FOR UPDATE",
);

/// Locks a tenant's names until the transaction ends, so that a free name stays free.
async fn hold_names(session: &mut dyn SqlSession, tenant: &TenantId) -> Result<(), StoreError> {
    session.rows(HOLD_NAMES, values![tenant.as_str()]).await.map(drop)
}

/// Makes a change to mailboxes, rules or contacts.
pub(crate) async fn change(
    session: &mut dyn SqlSession,
    change: &DirectoryChange,
) -> Result<ChangeResult, StoreError> {
    match change {
        DirectoryChange::CreateMailbox(mailbox) => mailboxes::create(session, mailbox).await,
        DirectoryChange::UpdateMailbox(mailbox, expected) => {
            mailboxes::update(session, mailbox, *expected).await
        }
        DirectoryChange::DeleteMailbox(key) => mailboxes::delete(session, key).await,
        DirectoryChange::CreateRule(rule) => rules::create(session, rule).await,
        DirectoryChange::UpdateRule(rule, expected) => rules::update(session, rule, *expected).await,
        DirectoryChange::DeleteRule(tenant, id) => rules::delete(session, tenant, id).await,
        DirectoryChange::CreateContact(contact) => contacts::create(session, contact).await,
        DirectoryChange::UpdateContact(contact, expected) => {
            contacts::update(session, contact, *expected).await
        }
        DirectoryChange::DeleteContact(tenant, id) => contacts::delete(session, tenant, id).await,
        _ => Err(StoreError::Unexpected(
            "a change of the directory that is not about mail that comes in".into(),
        )),
    }
}

/// Every statement of this module, for tests that prepare them.
#[cfg(test)]
pub(crate) fn statements() -> Vec<SqlText> {
    let listed = [
        mailboxes::STATEMENTS,
        cursor::STATEMENTS,
        rules::STATEMENTS,
        contacts::STATEMENTS,
        mails::STATEMENTS,
    ]
    .concat();
    [
        vec![HOLD_NAMES],
        listed,
        register::statements(),
        claim::statements(),
        settle::statements(),
        findings::statements(),
        domain_reports::statements(),
        append_events::statements(),
        receipts::statements(),
        removal::statements(),
        message_lookup::statements(),
    ]
    .concat()
}
