//! 000: `emails` by their status, and each request in a file.

use serde_json::{Value, json};

use super::{
    CarriedKind, MovingOptions, MovingVerdict, OldTableRow, RowFormat, SystemLayout, carry, column, counted,
    from, leave, stay, wrong,
};
use crate::{
    column::{OldTableSchema, needed, optional},
    database::OldDatabase,
    error::MovingError,
};

const EMAILS: OldTableSchema = OldTableSchema {
    name: "emails",
    columns: &[
        needed(&["id"]),
        needed(&["status"]),
        needed(&["payload_file_path"]),
        optional(&["eml_file_path"]),
        optional(&["reason"]),
        optional(&["version"]),
        optional(&["created_at"]),
        optional(&["updated_at"]),
    ],
    passed_over: &[],
};

pub(super) async fn add_steps(
    database: &mut OldDatabase,
    options: &MovingOptions,
    layout: &mut SystemLayout,
) -> Result<(), MovingError> {
    if options.payloads.is_none() {
        let message = "name the folder that payload_file_path leads into, with --payloads FOLDER";
        return Err(MovingError::Option(message.to_owned()));
    }
    let dialect = database.dialect();
    let Some(emails) = layout.find_needed(database, EMAILS).await? else { return Ok(()) };
    let status = column(&emails, dialect, "status");
    layout.add_count(EMAILS.name, status.clone(), &from(&emails, dialect), ended);
    let waiting = format!(
        "{} WHERE {status} IN ('ACCEPTED', 'INTAKING', 'READY', 'PROCESSING') ORDER BY {}",
        from(&emails, dialect),
        column(&emails, dialect, "id")
    );
    layout.add_rows(EMAILS.name, emails.all(dialect, "r"), waiting, email);
    Ok(())
}

fn email(mut row: OldTableRow, options: &MovingOptions) -> Vec<MovingVerdict> {
    let (id, status) = (row.needed("id"), row.needed("status"));
    if status == "PROCESSING" && !options.resend_doubtful {
        let why = "PROCESSING: nobody knows whether it was sent; look at the relay, or import it with --resend-doubtful";
        return leave(&row, why);
    }
    let path = row.needed("payload_file_path");
    let (Some(folder), true) = (&options.payloads, row.is_sound()) else { return wrong(row) };
    let mut body = match folder.read(&path) {
        Ok(body) => body,
        Err(message) => {
            row.refuse("payload_file_path", message);
            return wrong(row);
        }
    };
    match body.get("id").unwrap_or(&Value::Null) {
        Value::Null => drop(body.insert("id".to_owned(), json!(id))),
        Value::String(own) if *own == id => {}
        _ => row.refuse("payload_file_path", "the file is another mail's: its id is not this row's"),
    }
    carry(row, CarriedKind::Message, RowFormat::Theirs, None, body)
}

fn ended(mut row: OldTableRow, _: &MovingOptions) -> Vec<MovingVerdict> {
    let (status, count) = counted(&mut row);
    match status.as_str() {
        // These rows are read one by one.
        "ACCEPTED" | "INTAKING" | "READY" | "PROCESSING" => Vec::new(),
        "CALLING-SENT-CALLBACK" | "CALLING-FAILED-CALLBACK" => stay(
            EMAILS.name,
            status,
            count,
            "their callbacks are the old system's to make: let it run until there are none",
        ),
        "SENT" | "FAILED" | "INVALID" | "SENT-ACKNOWLEDGED" | "FAILED-ACKNOWLEDGED" => {
            stay(EMAILS.name, status, count, "history stays in the old table")
        }
        _ => {
            row.refuse("status", "is no status of this system: correct it there");
            wrong(row)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::tests::{carried, row},
        *,
    };
    use crate::payload::PayloadFolder;

    #[test]
    fn a_waiting_mail_is_its_file_under_its_own_id() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.json"), r#"{"from": "a@x.example"}"#).unwrap();
        std::fs::write(folder.path().join("b.json"), r#"{"id": "other"}"#).unwrap();
        let payloads = Some(PayloadFolder::new(folder.path(), None).unwrap());
        let mut options = MovingOptions { payloads, ..MovingOptions::default() };
        let judged = |status, path, options: &MovingOptions| {
            email(row("emails", &[("id", "e-1"), ("status", status), ("payload_file_path", path)]), options)
        };
        let found = carried(judged("READY", "a.json", &options));
        assert_eq!(Value::Object(found.body), json!({"from": "a@x.example", "id": "e-1"}));
        for path in ["b.json", "gone.json", " "] {
            let verdicts = judged("READY", path, &options);
            assert!(
                matches!(&verdicts[..], [MovingVerdict::Wrong(fault)] if fault.field == "payload_file_path"),
                "{path}"
            );
        }
        assert!(matches!(&judged("PROCESSING", "a.json", &options)[..], [MovingVerdict::Leave(_)]));
        options.resend_doubtful = true;
        carried(judged("PROCESSING", "a.json", &options));
    }
}
