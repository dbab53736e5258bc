//! What the lead has not settled, asked of each message that it met.
//!
//! One statement has every condition. Conditions that the filter does not have get a value that all messages
//! pass, so the text is the same for every filter, and each message is looked up by its id.

use std::collections::HashSet;

use postway_domain::{EmailAddress, EventKind, MessageStatus, MessageUid, TenantId};
use serde::Deserialize;

use crate::{
    error::StoreError,
    record::MessageFilter,
    sql::{
        Row, SqlSession, Value,
        multi_row::{MultiRow, MultiRowSql},
        values,
    },
};

/// Conditions on other tables are scalar subqueries of one row, and those on the message hide their columns
/// from PostgreSQL's planner, which leaves it only the lookup by id.
macro_rules! check {
    ($columns:literal, $from:literal, $tenant:literal, $status:literal, $address:literal) => {
        MultiRow::new(
            concat!(
                "SELECT m.uid",
                $columns,
                " FROM ",
                $from,
                " WHERE ",
                $tenant,
                " = ? AND ",
                $status,
                " BETWEEN ? AND ? AND m.exhausted >= ? \
                 AND (? = '' OR (SELECT l.account FROM lane l WHERE l.id = m.lane) = ?) \
                 AND (? = '' OR (SELECT l.batch FROM lane l WHERE l.id = m.lane) = ?) \
                 AND (? = '' OR (SELECT COUNT(*) FROM tag t WHERE t.tenant = ? AND t.tag = ? AND t.uid = m.uid) > 0) \
                 AND (? = '' OR (SELECT COUNT(*) FROM recipient r WHERE r.uid = m.uid AND ",
                $address,
                ") > 0) AND (? = '' OR (SELECT COUNT(*) FROM attempt a WHERE a.uid = m.uid AND a.provider_message_id = ?) > 0) \
                 AND (? = 0 OR (SELECT COUNT(*) FROM recipient o WHERE o.uid = m.uid AND o.outcome = ?) > 0) \
                 AND (? = 0 OR m.due_at IS NOT NULL) AND (? = 0 OR m.due_at IS NULL) AND m.uid IN ("
            ),
            1,
            ")",
        )
    };
}

macro_rules! check_in_each {
    ($columns:literal) => {
        MultiRowSql {
            sqlite: check!($columns, "message m", "m.tenant", "m.status", "r.address IN (?, ?)"),
            postgres: check!(
                $columns,
                "message m",
                "m.tenant || ''",
                "m.status + 0",
                "lower(r.address) IN (lower(? COLLATE \"C\"), lower(? COLLATE \"C\"))"
            ),
            mysql: check!(
                $columns,
                "message m FORCE INDEX (PRIMARY)",
                "m.tenant",
                "m.status",
                "CAST(LOWER(r.address) AS BINARY) IN (CAST(LOWER(?) AS BINARY), CAST(LOWER(?) AS BINARY))"
            ),
        }
    };
}

static CHECK: MultiRowSql = check_in_each!("");
/// The columns that only this program can compare: the subject, ignoring case, the failure's code, and the
/// lane. The subject of a sensitive message is never matched.
static CHECK_TEXT: MultiRowSql = check_in_each!(
    ", m.error, (SELECT c.subject FROM content c WHERE c.uid = m.uid AND c.sensitive = 0), \
     (SELECT l.account FROM lane l WHERE l.id = m.lane), (SELECT l.batch FROM lane l WHERE l.id = m.lane), \
     (SELECT COUNT(*) FROM recipient p WHERE p.uid = m.uid AND LOWER(p.address) LIKE ? ESCAPE '!'), \
     (SELECT c.metadata FROM content c WHERE c.uid = m.uid)"
);

#[cfg(test)]
pub(super) fn statements() -> Vec<crate::sql::SqlText> {
    vec![CHECK.sample(), CHECK_TEXT.sample()]
}

/// The part of a failure that is compared.
#[derive(Deserialize)]
struct FailureCode<'a> {
    #[serde(borrow)]
    code: Option<std::borrow::Cow<'a, str>>,
}

/// Whether a filter compares texts that only this program can compare.
pub(super) fn reads_text(filter: &MessageFilter) -> bool {
    let has_words = filter.subject.is_some() || filter.text.is_some() || filter.domain.is_some();
    has_words || filter.metadata.is_some() || filter.error_code.is_some() || filter.behind.is_some()
}

/// Those of these messages that match, in their order.
pub(super) async fn fitting(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    filter: &MessageFilter,
    uids: Vec<MessageUid>,
) -> Result<Vec<MessageUid>, StoreError> {
    let subject = filter.subject.as_deref().map(str::to_lowercase);
    let text = filter.text.as_deref().map(str::to_lowercase);
    let with_text = reads_text(filter);
    let check = if with_text { &CHECK_TEXT } else { &CHECK };
    let mut fitting: HashSet<MessageUid> = HashSet::new();
    for (sql, run) in check.runs(&uids) {
        let ids = run.iter().map(|uid| Value::from(uid.as_bytes()));
        let pattern = with_text.then(|| Value::from(address_pattern(filter)));
        let values = pattern.into_iter().chain(conditions(tenant, filter)).chain(ids).collect();
        for row in session.rows(sql, values).await? {
            if !with_text || has_text(&row, subject.as_deref(), text.as_deref(), filter)? {
                fitting.insert(MessageUid::from_bytes(row.id16(0)?));
            }
        }
    }
    Ok(uids.into_iter().filter(|uid| fitting.contains(uid)).collect())
}

/// The values before the ids.
fn conditions(tenant: &TenantId, filter: &MessageFilter) -> Vec<Value> {
    let (lowest, highest) = match filter.status {
        Some(status) => (status.code(), status.code()),
        None => (0, MessageStatus::ALL.iter().map(|status| status.code()).max().unwrap_or(0)),
    };
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let account = filter.account.as_ref().map(|account| account.as_str()).unwrap_or_default();
    let (batch, tag) = (text(&filter.batch), text(&filter.tag));
    let (recipient, provider) = (text(&filter.recipient), text(&filter.provider_message_id));
    // Mail accepted by earlier versions has domains as U-labels.
    let outcome = filter.outcome.map_or(0, EventKind::code);
    let other_spelling = EmailAddress::spellings_of(&recipient).last().unwrap_or_default();
    values![
        tenant.as_str(),
        lowest,
        highest,
        filter.exhausted,
        account,
        account,
        batch.clone(),
        batch,
        tag.clone(),
        tenant.as_str(),
        tag,
        recipient.clone(),
        recipient,
        other_spelling,
        provider.clone(),
        provider,
        outcome,
        outcome,
        i64::from(filter.waits),
        i64::from(filter.unresolved),
    ]
}

/// The LIKE pattern of an address for a domain or a text. With both, the text is searched in the subject
/// only.
fn address_pattern(filter: &MessageFilter) -> String {
    let plain = |text: &str| text.to_lowercase().replace('!', "!!").replace('%', "!%").replace('_', "!_");
    match (&filter.domain, &filter.text) {
        (Some(domain), _) => format!("%@{}", plain(domain)),
        (None, Some(text)) => format!("%{}%", plain(text)),
        (None, None) => String::new(),
    }
}

fn has_text(
    row: &Row,
    subject: Option<&str>,
    text: Option<&str>,
    filter: &MessageFilter,
) -> Result<bool, StoreError> {
    let has_code = match (filter.error_code.as_deref(), row.opt_text(1)?) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(code), Some(error)) => serde_json::from_str::<FailureCode>(error)
            .is_ok_and(|failure| failure.code.as_deref() == Some(code)),
    };
    let shown = row.opt_text(2)?.map(str::to_lowercase).unwrap_or_default();
    let has_subject = subject.is_none_or(|wanted| shown.contains(wanted));
    let has_address = row.int(5)? > 0;
    let has_words =
        text.is_none_or(|wanted| shown.contains(wanted) || (filter.domain.is_none() && has_address));
    let has_domain = filter.domain.is_none() || has_address;
    let is_behind = match &filter.behind {
        None => true,
        Some(holders) => holders.hold(row.text(3)?, row.opt_text(4)?),
    };
    let has_field = match &filter.metadata {
        None => true,
        Some(field) => field.is_in(row.opt_text(6)?),
    };
    Ok(has_code && has_field && has_subject && has_words && has_domain && is_behind)
}
