//! 002: watched mailboxes with their position, and unfinished tasks.
//!
//! A mailbox continues after `last_seen_uid`. Open tasks are before that position: if nothing was forwarded
//! after the first of them, the mailbox continues there instead, and they carry over with it; otherwise each
//! is reported.

use serde_json::{Map, json};

use super::{
    CarriedKind, MovingOptions, MovingVerdict, OldTableRow, RowFormat, SystemLayout, carry, column, from,
    leave, put, stay, wrong,
};
use crate::{
    column::{OldTableSchema, needed, optional, quoted},
    database::OldDatabase,
    error::MovingError,
};

const MAILBOXES: OldTableSchema = OldTableSchema {
    name: "monitored_emails",
    columns: &[
        needed(&["id"]),
        needed(&["email_address"]),
        needed(&["email_password"]),
        optional(&["description"]),
        needed(&["is_active"]),
        needed(&["last_seen_uid"]),
        optional(&["last_scanned_at"]),
    ],
    passed_over: &["created_at", "updated_at"],
};

const TASKS: OldTableSchema = OldTableSchema {
    name: "monitored_emails_tasks",
    columns: &[
        needed(&["id"]),
        needed(&["inbox_email"]),
        needed(&["uid"]),
        needed(&["status"]),
        optional(&["attempt_count"]),
        optional(&["error_message"]),
    ],
    passed_over: &["subject", "email_date", "created_at", "updated_at"],
};

/// The number of attempts per task in the old system.
const ATTEMPTS_MAX: u32 = 3;
/// The longest id of a mailbox here.
const ID_CHARS_MAX: usize = 64;

pub(super) async fn add_steps(
    database: &mut OldDatabase,
    options: &MovingOptions,
    layout: &mut SystemLayout,
) -> Result<(), MovingError> {
    let dialect = database.dialect();
    let mailboxes = layout.find_needed(database, MAILBOXES).await?;
    let tasks = layout.find_needed(database, TASKS).await?;
    let (Some(mailboxes), Some(tasks)) = (mailboxes, tasks) else { return Ok(()) };
    let task = |name: &str| tasks.sql(dialect, "t", name);
    let attempts = if tasks.has("attempt_count") { task("attempt_count") } else { "0".to_owned() };
    let doubtful = if options.resend_doubtful { ", 'in_progress'" } else { "" };
    let open =
        format!("{} IN ('received', 'error'{doubtful}) AND {attempts} < {ATTEMPTS_MAX}", task("status"));
    let table = quoted(dialect, TASKS.name);
    // The first open task and the last finished one: together they say whether a mailbox can continue before
    // its position.
    let of_mailbox = |address: &str| {
        let some = |what: &str, which: &str| {
            let inbox = task("inbox_email");
            format!("(SELECT {what}({}) FROM {table} t WHERE {inbox} = {address} AND {which})", task("uid"))
        };
        [
            ("first_open", some("MIN", &format!("({open})"))),
            ("last_done", some("MAX", &format!("NOT ({open})"))),
        ]
    };
    let mut columns = mailboxes.all(dialect, "r");
    columns.extend(of_mailbox(&column(&mailboxes, dialect, "email_address")));
    let ordered = format!("{} ORDER BY {}", from(&mailboxes, dialect), column(&mailboxes, dialect, "id"));
    layout.add_rows(MAILBOXES.name, columns, ordered, mailbox);
    let mut columns = tasks.all(dialect, "r");
    columns.extend(of_mailbox(&column(&tasks, dialect, "inbox_email")));
    let unfinished = format!(
        "{} WHERE {status} NOT IN ('forwarded', 'skipped_no_match') ORDER BY {id}",
        from(&tasks, dialect),
        status = column(&tasks, dialect, "status"),
        id = column(&tasks, dialect, "id"),
    );
    layout.add_rows(TASKS.name, columns, unfinished, unfinished_task);
    let done = format!(
        "{} WHERE {} IN ('forwarded', 'skipped_no_match')",
        from(&tasks, dialect),
        column(&tasks, dialect, "status")
    );
    layout.add_count(TASKS.name, column(&tasks, dialect, "status"), &done, finished);
    Ok(())
}

/// The first open task of the mailbox, if no later task is finished: the mailbox continues there.
fn goes_on_at(row: &mut OldTableRow) -> Option<i64> {
    let (first_open, last_done) = (row.number("first_open")?, row.number("last_done"));
    last_done.is_none_or(|done| done < first_open).then_some(first_open)
}

fn mailbox(mut row: OldTableRow, options: &MovingOptions) -> Vec<MovingVerdict> {
    if row.flag("is_active") == Some(false) && row.is_sound() {
        return stay(MAILBOXES.name, "not active", 1, "the old system does not watch them either");
    }
    let (address, password) = (row.needed("email_address"), row.needed("email_password"));
    let last_seen = row.number("last_seen_uid").unwrap_or_default();
    if !(0..=i64::from(u32::MAX)).contains(&last_seen) {
        row.refuse("last_seen_uid", "must be between 0 and 4294967295, as UIDs are");
    }
    let first = goes_on_at(&mut row);
    let after = first.map_or(last_seen, |first| last_seen.min(first - 1));
    let start = match (last_seen, after) {
        // It was never scanned. The old system would have begun with the newest mail.
        (0, _) => json!({"newest": 1}),
        (_, after) => json!({"after_uid": after}),
    };
    let mut body = Map::from_iter([
        ("id".to_owned(), json!(id_of(&address))),
        ("username".to_owned(), json!(address)),
        ("password".to_owned(), json!(password)),
        ("role".to_owned(), json!("forward")),
        ("start".to_owned(), start),
    ]);
    match options.hosts.host_for(&address) {
        Some(host) => put(&mut body, "host", Some(host)),
        None => row.refuse(
            "email_address",
            "the old table does not say where this mailbox is: give --imap-host HOST, or --imap-host DOMAIN=HOST",
        ),
    }
    put(&mut body, "port", options.hosts.port);
    put(&mut body, "tls", options.hosts.tls.clone());
    // Without rules no mail would match. It is watched once an operator activates it, from the old position.
    body.insert("active".to_owned(), json!(false));
    put(&mut body, "description", row.text("description"));
    carry(row, CarriedKind::Mailbox, RowFormat::Ours, None, body)
}

/// An address as an id: characters that an id cannot have become dashes.
fn id_of(address: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    address.chars().map(|c| if fits(c) { c } else { '-' }).take(ID_CHARS_MAX).collect()
}

fn unfinished_task(mut row: OldTableRow, options: &MovingOptions) -> Vec<MovingVerdict> {
    let (status, inbox) = (row.needed("status"), row.needed("inbox_email"));
    let uid = row.number("uid").unwrap_or_default();
    let attempts = row.number("attempt_count").unwrap_or_default();
    let goes_on_at = goes_on_at(&mut row);
    if !matches!(status.as_str(), "received" | "in_progress" | "error") {
        row.refuse("status", "is no status of this system: correct it there");
    }
    if !row.is_sound() {
        return wrong(row);
    }
    if status == "in_progress" && !options.resend_doubtful {
        let why = format!(
            "in_progress: nobody knows whether UID {uid} of {inbox} was forwarded; look, or import it with --resend-doubtful"
        );
        return leave(&row, why);
    }
    match (attempts < i64::from(ATTEMPTS_MAX), goes_on_at) {
        (false, _) => stay(TASKS.name, "error", 1, "the old system has given up on them"),
        (true, Some(first)) if first <= uid => {
            stay(TASKS.name, "open tasks", 1, "carry over: their mailbox goes on before the first of them")
        }
        (true, _) => {
            let why = format!(
                "{status}: mail after UID {uid} of {inbox} was dealt with already; let the old system finish this one, or forward it by hand"
            );
            leave(&row, why)
        }
    }
}

fn finished(mut row: OldTableRow, _: &MovingOptions) -> Vec<MovingVerdict> {
    let (status, count) = super::counted(&mut row);
    stay(TASKS.name, status, count, "history stays in the old table")
}

#[cfg(test)]
mod tests {
    use super::{
        super::{
            ImapHosts,
            tests::{carried, row},
        },
        *,
    };

    fn options() -> MovingOptions {
        let hosts = ImapHosts { host: Some("imap.x.example".to_owned()), ..ImapHosts::default() };
        MovingOptions { hosts, ..MovingOptions::default() }
    }

    fn started(cells: &[(&'static str, &str)]) -> serde_json::Value {
        let fixed =
            [("id", "1"), ("email_address", "a b@x.example"), ("email_password", "p"), ("is_active", "1")];
        let cells: Vec<_> = fixed.iter().chain(cells).copied().collect();
        let found = carried(mailbox(row("monitored_emails", &cells), &options()));
        assert_eq!(found.body["id"], "a-b-x.example");
        found.body["start"].clone()
    }

    #[test]
    fn a_mailbox_goes_on_where_the_old_one_was() {
        assert_eq!(started(&[("last_seen_uid", "0")]), json!({"newest": 1}));
        assert_eq!(started(&[("last_seen_uid", "42")]), json!({"after_uid": 42}));
        assert_eq!(started(&[("last_seen_uid", "42"), ("first_open", "40")]), json!({"after_uid": 39}));
        let between = [("last_seen_uid", "42"), ("first_open", "40"), ("last_done", "41")];
        assert_eq!(started(&between), json!({"after_uid": 42}));
    }

    #[test]
    fn an_open_task_that_does_not_carry_over_is_named() {
        let judged = |cells: &[(&'static str, &str)]| {
            let fixed = [("id", "7"), ("inbox_email", "a@x.example"), ("uid", "40")];
            let cells: Vec<_> = fixed.iter().chain(cells).copied().collect();
            unfinished_task(row("monitored_emails_tasks", &cells), &options())
        };
        let open = [("status", "error"), ("attempt_count", "1"), ("first_open", "40")];
        assert!(matches!(&judged(&open)[..], [MovingVerdict::Stay(stayed)] if stayed.what == "open tasks"));
        let passed = [("status", "received"), ("first_open", "40"), ("last_done", "41")];
        assert!(matches!(&judged(&passed)[..], [MovingVerdict::Leave(left)] if left.why.contains("UID 40")));
        assert!(matches!(&judged(&[("status", "in_progress")])[..], [MovingVerdict::Leave(_)]));
        assert!(matches!(
            &judged(&[("status", "error"), ("attempt_count", "3")])[..],
            [MovingVerdict::Stay(_)]
        ));
        assert!(matches!(&judged(&[("status", "lost")])[..], [MovingVerdict::Wrong(_)]));
    }
}
