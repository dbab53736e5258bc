//! 004: waiting outbox rows, and the directory of recipients. Logs and events are history.
//!
//! Columns are in camel case (`companyId`) or in snake case (`company_id`).

use serde_json::{Map, json};

use super::{
    CarriedKind, MovingOptions, MovingVerdict, OldTableRow, RowFormat, SystemLayout, carry, column, counted,
    from, leave, put, stay, wrong,
};
use crate::{
    column::{OldTableSchema, needed, optional, quoted},
    database::OldDatabase,
    error::MovingError,
};

const OUTBOX: OldTableSchema = OldTableSchema {
    name: "email_outbox",
    columns: &[
        needed(&["id", "outboxId", "outbox_id"]),
        needed(&["companyId", "company_id"]),
        optional(&["recipientId", "recipient_id"]),
        needed(&["to"]),
        optional(&["cc"]),
        optional(&["bcc"]),
        optional(&["replyTo", "reply_to"]),
        optional(&["from"]),
        needed(&["subject"]),
        needed(&["html"]),
        optional(&["text"]),
        optional(&["headers"]),
        optional(&["tags"]),
        optional(&["externalId", "external_id"]),
        needed(&["status"]),
        optional(&["attempts"]),
        optional(&["lastError", "last_error"]),
        optional(&["processedAt", "processed_at"]),
        optional(&["requestId", "request_id"]),
        optional(&["createdAt", "created_at"]),
        optional(&["updatedAt", "updated_at"]),
    ],
    passed_over: &[],
};

const RECIPIENTS: OldTableSchema = OldTableSchema {
    name: "recipients",
    columns: &[
        needed(&["id"]),
        needed(&["companyId", "company_id"]),
        optional(&["externalId", "external_id"]),
        optional(&["razaoSocial", "razao_social"]),
        optional(&["nome"]),
        needed(&["email"]),
        optional(&["cpfCnpj", "cpf_cnpj"]),
        optional(&["deletedAt", "deleted_at"]),
    ],
    passed_over: &["createdAt", "created_at", "updatedAt", "updated_at"],
};

/// The statuses of waiting mail. `PENDING` and `ENQUEUED` precede the first status in its documentation.
const WAITING: [&str; 5] = ["PENDING", "ENQUEUED", "RECEIVED", "VALIDATED", "RETRY_SCHEDULED"];
/// The status of mail that may have been sent.
const DOUBTFUL: &str = "SENT_ATTEMPT";

pub(super) async fn add_steps(
    database: &mut OldDatabase,
    layout: &mut SystemLayout,
) -> Result<(), MovingError> {
    let dialect = database.dialect();
    let recipients = layout.find_optional(database, RECIPIENTS).await?;
    let Some(outbox) = layout.find_needed(database, OUTBOX).await? else { return Ok(()) };
    let of = |name: &str| column(&outbox, dialect, name);
    let (mut columns, mut joined) = (outbox.all(dialect, "r"), from(&outbox, dialect));
    if let Some(recipients) = recipients {
        let ordered =
            format!("{} ORDER BY {}", from(&recipients, dialect), column(&recipients, dialect, "id"));
        layout.add_rows(RECIPIENTS.name, recipients.all(dialect, "r"), ordered, recipient);
        if outbox.has("recipientId") {
            let (table, id) = (quoted(dialect, RECIPIENTS.name), recipients.sql(dialect, "d", "id"));
            joined = format!("{joined} LEFT JOIN {table} d ON {id} = {}", of("recipientId"));
            columns.push(("known_id", id));
            columns.push(("known_external_id", recipients.sql(dialect, "d", "externalId")));
            columns.push(("known_email", recipients.sql(dialect, "d", "email")));
            columns.push(("known_deleted", recipients.sql(dialect, "d", "deletedAt")));
        }
    }
    layout.add_count(OUTBOX.name, of("status"), &from(&outbox, dialect), ended);
    let list =
        WAITING.iter().chain([&DOUBTFUL]).map(|status| format!("'{status}'")).collect::<Vec<_>>().join(", ");
    // Compared as text, because an enumeration type may lack some of the statuses.
    let status = crate::column::as_text(dialect, &of("status"));
    let waiting = format!("{joined} WHERE {status} IN ({list}) ORDER BY {}", of("id"));
    layout.add_rows(OUTBOX.name, columns, waiting, mail);
    Ok(())
}

fn recipient(mut row: OldTableRow, _: &MovingOptions) -> Vec<MovingVerdict> {
    let id = row.needed("id");
    if row.text("deletedAt").is_some() {
        return stay(RECIPIENTS.name, "deleted", 1, "deleted entries stay behind");
    }
    let tenant = row.needed("companyId");
    let mut body = Map::new();
    put(&mut body, "external_id", row.text("externalId").or(Some(id)));
    let names = [row.text("razaoSocial"), row.text("nome")];
    put(&mut body, "name", names.into_iter().flatten().next());
    put(&mut body, "address", Some(row.needed("email")));
    put(&mut body, "personal_number", row.text("cpfCnpj"));
    carry(row, CarriedKind::Recipient, RowFormat::Ours, Some(tenant), body)
}

fn mail(mut row: OldTableRow, options: &MovingOptions) -> Vec<MovingVerdict> {
    let (id, tenant) = (row.needed("id"), row.needed("companyId"));
    if row.needed("status") == DOUBTFUL && !options.resend_doubtful {
        let why = "SENT_ATTEMPT: nobody knows whether it was sent; look at the relay, or import it with --resend-doubtful";
        return leave(&row, why);
    }
    // The body has the old system's format, for its compatibility API.
    let mut body = Map::from_iter([("id".to_owned(), json!(id))]);
    for name in ["to", "cc", "bcc", "replyTo", "tags"] {
        put(&mut body, name, row.list(name));
    }
    for name in ["from", "subject", "html", "text", "externalId", "requestId"] {
        put(&mut body, name, row.text(name));
    }
    put(&mut body, "headers", row.json("headers"));
    if !body.contains_key("to") {
        row.refuse("to", "is empty: it is needed");
    }
    let named = row.text("recipientId");
    match (named, row.text("known_id")) {
        (None, _) => {}
        (Some(_), Some(known)) => {
            let external_id = row.text("known_external_id").unwrap_or(known);
            let email = row.text("known_email");
            if row.text("known_deleted").is_some() {
                row.refuse("recipientId", "the recipient was deleted: clear it, or restore the entry");
            }
            put(&mut body, "recipient", Some(json!({"externalId": external_id, "email": email})));
        }
        (Some(_), None) => {
            row.refuse("recipientId", "there is no such recipient: clear it, or restore the entry")
        }
    }
    carry(row, CarriedKind::Message, RowFormat::Theirs, Some(tenant), body)
}

fn ended(mut row: OldTableRow, _: &MovingOptions) -> Vec<MovingVerdict> {
    let (status, count) = counted(&mut row);
    match status.as_str() {
        // These rows are read one by one.
        status if WAITING.contains(&status) || status == DOUBTFUL => Vec::new(),
        "SENT" | "FAILED" | "VALIDATION_FAILED" => {
            stay(OUTBOX.name, status, count, "history stays in the old table")
        }
        _ => {
            row.refuse("status", "is no status of this system: correct it there");
            wrong(row)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::{
        super::tests::{carried, row},
        *,
    };

    const FIXED: [(&str, &str); 6] = [
        ("id", "o-1"),
        ("companyId", "acme"),
        ("to", "a@x.example"),
        ("subject", "s"),
        ("html", "<p>h"),
        ("status", "RETRY_SCHEDULED"),
    ];

    #[test]
    fn a_waiting_row_is_said_as_its_program_said_it() {
        let more = [
            ("cc", r#"["b@x.example"]"#),
            ("requestId", "req-1"),
            ("recipientId", "r-1"),
            ("known_id", "r-1"),
            ("known_external_id", "C-1"),
            ("known_email", "a@x.example"),
        ];
        let cells: Vec<_> = FIXED.into_iter().chain(more).collect();
        let found = carried(mail(row("email_outbox", &cells), &MovingOptions::default()));
        assert_eq!(found.tenant.as_deref(), Some("acme"));
        assert_eq!(
            Value::Object(found.body),
            json!({"id": "o-1", "to": "a@x.example", "cc": ["b@x.example"], "subject": "s",
            "html": "<p>h", "requestId": "req-1", "recipient": {"externalId": "C-1", "email": "a@x.example"}})
        );
        let lost: Vec<_> = FIXED.into_iter().chain([("recipientId", "r-1")]).collect();
        let verdicts = mail(row("email_outbox", &lost), &MovingOptions::default());
        assert!(
            matches!(&verdicts[..], [MovingVerdict::Wrong(fault)] if fault.field == "recipientId"),
            "{verdicts:?}"
        );
    }

    #[test]
    fn mail_that_may_have_been_sent_is_left_unless_it_is_asked_for() {
        let mut cells = FIXED;
        cells[5].1 = "SENT_ATTEMPT";
        let judged = |options: &MovingOptions| mail(row("email_outbox", &cells), options);
        assert!(matches!(&judged(&MovingOptions::default())[..], [MovingVerdict::Leave(_)]));
        carried(judged(&MovingOptions { resend_doubtful: true, ..MovingOptions::default() }));
    }

    #[test]
    fn a_recipient_without_an_id_of_its_company_has_its_own() {
        let cells = [
            ("id", "r-1"),
            ("companyId", "acme"),
            ("nome", "Ada"),
            ("email", "ada@x.example"),
            ("cpfCnpj", "12345"),
        ];
        let found = carried(recipient(row("recipients", &cells), &MovingOptions::default()));
        let expected = json!({"external_id": "r-1", "name": "Ada", "address": "ada@x.example", "personal_number": "12345"});
        assert_eq!(Value::Object(found.body), expected);
    }
}
