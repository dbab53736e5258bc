//! 001: tenants, accounts, and messages whose state is in their times.
//!
//! The old system marks a message when it has been sent, not when sending begins. A message that was on the
//! wire when the system was killed looks like a waiting one, so the system must be stopped in an orderly way.

use serde_json::{Map, Value, json};

use super::{
    CarriedKind, MovingOptions, MovingVerdict, OldTableRow, RowFormat, SystemLayout, carry, column, counted,
    from, leave, put, stay, wrong,
};
use crate::{
    column::{OldColumnSchema, OldTableSchema, needed, optional},
    database::OldDatabase,
    error::MovingError,
};

const TENANTS: OldTableSchema = OldTableSchema {
    name: "tenants",
    columns: &[
        needed(&["id"]),
        optional(&["name"]),
        optional(&["active", "is_active"]),
        optional(&["client_base_url"]),
        optional(&["client_sync_path"]),
        optional(&["client_attachment_path"]),
        optional(&["client_auth"]),
        optional(&["rate_limits"]),
        optional(&["suspended_batches"]),
    ],
    passed_over: &["created_at", "updated_at"],
};

const ACCOUNTS: OldTableSchema = OldTableSchema {
    name: "accounts",
    columns: &[
        needed(&["id"]),
        optional(&["tenant_id"]),
        needed(&["host"]),
        optional(&["port"]),
        optional(&["user", "username"]),
        optional(&["password"]),
        optional(&["use_tls"]),
        optional(&["use_ssl"]),
        optional(&["limit_per_minute"]),
        optional(&["limit_per_hour"]),
        optional(&["limit_per_day"]),
        optional(&["limit_behavior"]),
        optional(&["is_pec_account"]),
        optional(&["imap_host"]),
    ],
    passed_over: &["created_at", "updated_at"],
};

const MESSAGES: OldTableSchema = OldTableSchema {
    name: "messages",
    columns: MESSAGE_COLUMNS,
    passed_over: &[
        "created_at",
        "updated_at",
        "error",
        "bounce_code",
        "bounce_reason",
        "bounce_ts",
        "bounce_reported_ts",
        "pec_rda_ts",
        "pec_rdc_ts",
        "pec_error",
        "pec_error_ts",
    ],
};

const MESSAGE_COLUMNS: &[OldColumnSchema] = &[
    needed(&["id"]),
    optional(&["tenant_id"]),
    needed(&["account_id"]),
    needed(&["priority"]),
    needed(&["payload"]),
    optional(&["batch_code"]),
    needed(&["deferred_ts"]),
    needed(&["sent_ts"]),
    needed(&["error_ts"]),
    optional(&["reported_ts"]),
    optional(&["bounce_type"]),
];

/// The prefix of a password that the old system has encrypted.
const ENCRYPTED: &str = "ENC:";
/// In the list of suspended batches: the whole tenant.
const ALL_BATCHES: &str = "*";

pub(super) async fn add_steps(
    database: &mut OldDatabase,
    layout: &mut SystemLayout,
) -> Result<(), MovingError> {
    let dialect = database.dialect();
    let tenants = layout.find_optional(database, TENANTS).await?;
    let accounts = layout.find_optional(database, ACCOUNTS).await?;
    let Some(messages) = layout.find_needed(database, MESSAGES).await? else { return Ok(()) };
    for (found, judge) in [(&tenants, tenant as fn(_, &_) -> _), (&accounts, account as fn(_, &_) -> _)] {
        if let Some(found) = found {
            let from = format!("{} ORDER BY {}", from(found, dialect), column(found, dialect, "id"));
            layout.add_rows(found.table.name, found.all(dialect, "r"), from, judge);
        }
    }
    let of = |name: &str| column(&messages, dialect, name);
    let (mut columns, mut joined) = (messages.all(dialect, "r"), from(&messages, dialect));
    // If messages do not name their tenant, their account does.
    if let Some(accounts) =
        accounts.filter(|accounts| accounts.has("tenant_id") && !messages.has("tenant_id"))
    {
        let (id, table) = (accounts.sql(dialect, "a", "id"), crate::column::quoted(dialect, ACCOUNTS.name));
        joined = format!("{joined} LEFT JOIN {table} a ON {id} = {}", of("account_id"));
        columns.retain(|(name, _)| *name != "tenant_id");
        columns.push(("tenant_id", accounts.sql(dialect, "a", "tenant_id")));
    }
    let bounced = format!("{joined} WHERE {} = 'hard' ORDER BY {}", of("bounce_type"), of("id"));
    if messages.has("bounce_type") {
        layout.add_rows(MESSAGES.name, columns.clone(), bounced, bounce);
    }
    let (sent, failed) = (of("sent_ts"), of("error_ts"));
    let class = format!(
        "CASE WHEN {sent} IS NULL AND {failed} IS NULL THEN 'waiting' WHEN {} IS NULL THEN 'unreported' \
         WHEN {failed} IS NULL THEN 'sent' ELSE 'failed' END",
        if messages.has("reported_ts") { of("reported_ts") } else { "0".to_owned() }
    );
    layout.add_count(MESSAGES.name, class, &from(&messages, dialect), ended);
    let waiting = format!("{joined} WHERE {sent} IS NULL AND {failed} IS NULL ORDER BY {}", of("id"));
    layout.add_rows(MESSAGES.name, columns, waiting, message);
    Ok(())
}

fn tenant(mut row: OldTableRow, _: &MovingOptions) -> Vec<MovingVerdict> {
    let id = row.needed("id");
    let mut body = Map::from_iter([("id".to_owned(), json!(id))]);
    for name in ["name", "client_base_url", "client_sync_path", "client_attachment_path"] {
        put(&mut body, name, row.text(name));
    }
    put(&mut body, "client_auth", row.json("client_auth").filter(|auth| *auth != json!({})));
    let limits = row.json("rate_limits").is_some_and(|limits| limits_something(&limits));
    let active = row.flag("active").unwrap_or(true);
    let suspended = row.text("suspended_batches").unwrap_or_default();
    if !row.is_sound() {
        return wrong(row);
    }
    let mut verdicts = match limits {
        true => leave(
            &row,
            "rate_limits: limits are an account's here; set --per-hour and --per-day on its accounts",
        ),
        false => Vec::new(),
    };
    let batches: Vec<&str> = suspended.split(',').map(str::trim).filter(|code| !code.is_empty()).collect();
    let suspension = |kind, body| carry(row.clone(), kind, RowFormat::Ours, Some(id.clone()), body);
    verdicts.extend(carry(row.clone(), CarriedKind::Tenant, RowFormat::Theirs, None, body));
    if !active || batches.contains(&ALL_BATCHES) {
        verdicts.extend(suspension(
            CarriedKind::TenantSuspension,
            Map::from_iter([("id".to_owned(), json!(id))]),
        ));
    }
    for code in batches.into_iter().filter(|code| *code != ALL_BATCHES) {
        verdicts.extend(suspension(
            CarriedKind::BatchSuspension,
            Map::from_iter([("code".to_owned(), json!(code))]),
        ));
    }
    verdicts
}

/// Whether limits, such as `{"hourly": 0}`, limit anything.
fn limits_something(limits: &Value) -> bool {
    let limit = |limit: &Value| !limit.is_null() && limit.as_f64() != Some(0.0);
    limits.as_object().is_none_or(|limits| limits.values().any(limit))
}

fn account(mut row: OldTableRow, _: &MovingOptions) -> Vec<MovingVerdict> {
    let mut body = Map::new();
    for name in ["id", "host"] {
        put(&mut body, name, Some(row.needed(name)));
    }
    for name in ["port", "limit_per_minute", "limit_per_hour", "limit_per_day"] {
        put(&mut body, name, row.number(name));
    }
    for name in ["user", "password", "limit_behavior"] {
        put(&mut body, name, row.text(name));
    }
    for name in ["use_tls", "use_ssl", "is_pec_account"] {
        put(&mut body, name, row.flag(name));
    }
    if body.get("password").and_then(Value::as_str).is_some_and(|password| password.starts_with(ENCRYPTED)) {
        row.refuse(
            "password",
            "is encrypted with the old system's key: create this account here with its password, then run this again",
        );
    }
    let tenant = row.text("tenant_id");
    let watches = row.text("imap_host").is_some();
    let mut verdicts = match watches {
        true => leave(
            &row,
            "imap_host: an account only sends here; watch its mailbox with `postway mailboxes add`",
        ),
        false => Vec::new(),
    };
    verdicts.extend(carry(row, CarriedKind::Account, RowFormat::Theirs, tenant, body));
    verdicts
}

fn message(mut row: OldTableRow, _: &MovingOptions) -> Vec<MovingVerdict> {
    let id = row.needed("id");
    let mut body = row.object("payload");
    // The old system uses the columns, not the payload.
    body.insert("id".to_owned(), json!(id));
    for name in ["account_id", "batch_code"] {
        put(&mut body, name, row.text(name));
    }
    for name in ["priority", "deferred_ts"] {
        put(&mut body, name, row.number(name));
    }
    let named = body.remove("tenant_id").and_then(|tenant| tenant.as_str().map(str::to_owned));
    let tenant = row.text("tenant_id").or(named);
    carry(row, CarriedKind::Message, RowFormat::Theirs, tenant, body)
}

/// Suppresses the address of a hard bounce, if the message had only one.
fn bounce(mut row: OldTableRow, options: &MovingOptions) -> Vec<MovingVerdict> {
    const WHAT: &str = "hard bounces";
    if !options.suppress_hard_bounces {
        return stay(MESSAGES.name, WHAT, 1, "--suppress-hard-bounces has these addresses get no mail here");
    }
    let payload = row.object("payload");
    let tenant = row.text("tenant_id");
    if !row.is_sound() {
        return wrong(row);
    }
    match only_recipient(&payload) {
        None => stay(MESSAGES.name, WHAT, 1, "they had several recipients: nobody knows which one bounced"),
        Some(address) => {
            let body =
                json!({"address": address, "reason": "hard_bounce", "note": "bounced before the move"});
            let Value::Object(body) = body else { return Vec::new() };
            carry(row, CarriedKind::Suppression, RowFormat::Ours, tenant, body)
        }
    }
}

/// The address of a message that has one recipient.
fn only_recipient(payload: &Map<String, Value>) -> Option<String> {
    let mut all = Vec::new();
    for name in ["to", "cc", "bcc"] {
        match payload.get(name) {
            None | Some(Value::Null) => {}
            Some(Value::String(text)) => all.extend(text.split(',').map(str::trim)),
            Some(Value::Array(list)) => all.extend(list.iter().map(|one| one.as_str().unwrap_or("?"))),
            Some(_) => return None,
        }
    }
    all.retain(|address| !address.is_empty());
    let [one] = all[..] else { return None };
    let bare = one.rsplit_once('<').and_then(|(_, rest)| rest.strip_suffix('>'));
    Some(bare.unwrap_or(one).to_owned())
}

fn ended(mut row: OldTableRow, _: &MovingOptions) -> Vec<MovingVerdict> {
    let history = "history stays in the old table";
    match counted(&mut row) {
        (class, count) if class == "unreported" => stay(
            MESSAGES.name,
            "ended and not reported",
            count,
            "their reports are the old system's to make: let it run until there are none",
        ),
        (class, count) if class == "sent" || class == "failed" => stay(MESSAGES.name, class, count, history),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::tests::{carried, row},
        *,
    };

    #[test]
    fn a_waiting_message_is_its_payload_with_what_its_columns_say() {
        let payload =
            r#"{"id": "x", "tenant_id": "other", "from": "a@x.example", "priority": 3, "body": "t"}"#;
        let cells = [
            ("id", "m-1"),
            ("tenant_id", "acme"),
            ("account_id", "smtp-1"),
            ("priority", "1"),
            ("payload", payload),
            ("batch_code", "spring"),
            ("deferred_ts", "1900000000"),
        ];
        let found = carried(message(row("messages", &cells), &MovingOptions::default()));
        assert_eq!(
            (found.kind, found.form, found.tenant.as_deref()),
            (CarriedKind::Message, RowFormat::Theirs, Some("acme"))
        );
        let expected = json!({"id": "m-1", "from": "a@x.example", "priority": 1, "body": "t",
            "account_id": "smtp-1", "batch_code": "spring", "deferred_ts": 1_900_000_000});
        assert_eq!(Value::Object(found.body), expected);
    }

    #[test]
    fn a_message_that_cannot_be_read_is_wrong_by_field() {
        let cells = [("id", "m-1"), ("priority", "high"), ("payload", "{\"from\"")];
        let verdicts = message(row("messages", &cells), &MovingOptions::default());
        let fields: Vec<&str> = verdicts
            .iter()
            .map(|verdict| match verdict {
                MovingVerdict::Wrong(fault) => fault.field.as_str(),
                _ => panic!("{verdict:?}"),
            })
            .collect();
        assert_eq!(fields, ["payload", "priority"]);
    }

    #[test]
    fn what_was_suspended_stays_suspended() {
        let cells = [
            ("id", "acme"),
            ("active", "0"),
            ("suspended_batches", "spring, *,"),
            ("rate_limits", r#"{"hourly": 5}"#),
        ];
        let verdicts = tenant(row("tenants", &cells), &MovingOptions::default());
        let kinds: Vec<Option<CarriedKind>> = verdicts
            .iter()
            .map(|verdict| match verdict {
                MovingVerdict::Carry(carried) => Some(carried.kind),
                _ => None,
            })
            .collect();
        assert_eq!(
            kinds,
            [
                None,
                Some(CarriedKind::Tenant),
                Some(CarriedKind::TenantSuspension),
                Some(CarriedKind::BatchSuspension)
            ]
        );
    }

    #[test]
    fn an_encrypted_password_is_not_taken_for_one() {
        let cells = [("id", "smtp-1"), ("host", "h"), ("user", "u"), ("password", "ENC:abc")];
        let verdicts = account(row("accounts", &cells), &MovingOptions::default());
        assert!(
            matches!(&verdicts[..], [MovingVerdict::Wrong(fault)] if fault.field == "password"),
            "{verdicts:?}"
        );
    }

    #[test]
    fn a_bounce_suppresses_the_address_of_its_only_recipient() {
        for (payload, address) in [
            (json!({"to": "Ada <ada@x.example>"}), Some("ada@x.example")),
            (json!({"to": ["ada@x.example"], "cc": null, "bcc": ""}), Some("ada@x.example")),
            (json!({"to": "ada@x.example, bob@x.example"}), None),
            (json!({"to": "ada@x.example", "cc": ["bob@x.example"]}), None),
            (json!({}), None),
        ] {
            assert_eq!(only_recipient(payload.as_object().unwrap()).as_deref(), address, "{payload}");
        }
    }
}
