//! The tables that are copied. A new table or column of a migration is added here; a test compares the list
//! with the schema of each database, and fails until it is.

use super::{
    columns::{
        ARCHIVED_MAIL, BULK_ACTION, CONTENT, DOMAIN_REPORT, DOMAIN_REPORT_LINE, GATEWAY_USER, INBOUND,
        MESSAGE, NOTIFICATION, PROVIDER_EVENT, STREAM_STATISTIC, SUBSCRIBER,
    },
    table_description::{CopiedTable, bytes, int, text},
};

/// The approximate size of a template: its characters. The version makes it a 64-bit number everywhere.
const TEMPLATE_BYTES: &str = "0 * version + LENGTH(subject) + COALESCE(LENGTH(html), 0) + COALESCE(LENGTH(text), 0) \
     + COALESCE(LENGTH(mjml), 0) + COALESCE(LENGTH(sample), 0)";

/// Every table that is copied, in order: referred-to tables before referring ones, and the queue last, so
/// that nothing can be claimed before everything is there.
pub(super) static TABLES: &[CopiedTable] = &[
    CopiedTable::new(
        "tenant",
        1,
        &[
            text("id"),
            text("name"),
            text("default_account"),
            int("created_at"),
            text("settings"),
            bytes("secret"),
            int("weight"),
            int("version"),
            int("updated_at"),
            int("deleted_at"),
        ],
    )
    .seeds("id = 'default'"),
    CopiedTable::new(
        "api_key",
        1,
        &[
            text("id"),
            text("tenant"),
            text("name"),
            bytes("digest"),
            text("scopes"),
            text("networks"),
            int("created_at"),
            int("expires_at"),
            int("last_used_at"),
            int("revoked_at"),
            bytes("scram"),
            text("restrictions"),
            text("created_by"),
        ],
    ),
    CopiedTable::new(
        "quota_use",
        2,
        &[text("tenant"), int("day"), int("messages"), int("bytes"), int("recipients"), int("warned")],
    ),
    CopiedTable::new("ended_session", 1, &[bytes("id"), int("ends_at")]),
    CopiedTable::new("gateway_user", 1, GATEWAY_USER).summed("version"),
    CopiedTable::new(
        "user_session",
        1,
        &[
            bytes("id"),
            bytes("user_id"),
            int("began_at"),
            int("ends_at"),
            int("seen_at"),
            text("way"),
            text("address"),
            text("agent"),
        ],
    ),
    CopiedTable::new(
        "oauth_state",
        2,
        &[
            text("tenant"),
            text("owner"),
            bytes("tokens"),
            int("renewing_until"),
            int("version"),
            int("updated_at"),
        ],
    )
    .summed("version"),
    CopiedTable::new("suspension", 3, &[text("tenant"), int("kind"), text("code"), int("since")]),
    CopiedTable::new(
        "suppression",
        2,
        &[text("tenant"), text("address"), int("reason"), text("note"), int("created_at"), int("expires_at")],
    ),
    CopiedTable::new(
        "scoped_suppression",
        3,
        &[
            text("tenant"),
            text("pattern"),
            text("stream"),
            int("reason"),
            text("note"),
            int("created_at"),
            int("expires_at"),
        ],
    ),
    CopiedTable::new(
        "stream",
        2,
        &[
            text("tenant"),
            text("id"),
            text("name"),
            text("description"),
            int("unsubscribe"),
            text("unsubscribe_mailto"),
            int("version"),
            int("created_at"),
            int("updated_at"),
        ],
    )
    .summed("version"),
    CopiedTable::new(
        "route",
        2,
        &[
            text("tenant"),
            text("id"),
            int("position"),
            int("active"),
            text("content"),
            int("version"),
            int("created_at"),
            int("updated_at"),
        ],
    )
    .summed("version"),
    CopiedTable::new("dialogue", 1, &[bytes("uid"), int("attempt"), text("content")]),
    CopiedTable::new(
        "audit",
        1,
        &[
            bytes("id"),
            int("at"),
            text("actor"),
            text("tenant"),
            text("action"),
            text("target"),
            text("request_id"),
            text("detail"),
            int("position"),
            bytes("previous"),
            bytes("digest"),
            bytes("salt"),
            bytes("target_digest"),
        ],
    ),
    CopiedTable::new("bulk_action", 2, BULK_ACTION).summed("version"),
    CopiedTable::new(
        "domain_check",
        2,
        &[text("tenant"), text("domain"), text("findings"), int("checked_at"), int("right_since")],
    )
    .summed("checked_at"),
    CopiedTable::new("domain_report", 3, DOMAIN_REPORT).summed("total"),
    CopiedTable::new("domain_report_line", 7, DOMAIN_REPORT_LINE).summed("total"),
    CopiedTable::new("archived_mail", 2, ARCHIVED_MAIL).summed("size"),
    CopiedTable::new("audit_head", 1, &[int("id"), int("position"), bytes("digest"), int("trimmed")])
        .summed("position")
        .seeds("id = 1"),
    CopiedTable::new(
        "circuit",
        2,
        &[
            text("tenant"),
            text("account"),
            text("code"),
            text("reason"),
            int("opened_at"),
            int("open_until"),
            int("faults"),
        ],
    ),
    CopiedTable::new("spent", 4, &[text("tenant"), text("account"), int("span"), int("bucket"), int("used")])
        .summed("used"),
    CopiedTable::new("collapse", 2, &[text("tenant"), text("name"), bytes("uid"), bytes("previous")]),
    CopiedTable::new(
        "account",
        2,
        &[
            text("tenant"),
            text("id"),
            text("settings"),
            bytes("secret"),
            int("version"),
            int("created_at"),
            int("updated_at"),
        ],
    )
    .summed("version")
    .seeds("tenant = 'default' AND id = 'sandbox'"),
    CopiedTable::new(
        "lane",
        1,
        &[
            bytes("id"),
            text("tenant"),
            text("account"),
            int("priority"),
            text("batch"),
            int("idle_since"),
            text("destination"),
        ],
    ),
    CopiedTable::new(
        "dedup",
        3,
        &[text("tenant"), int("kind"), text("key"), bytes("fingerprint"), bytes("uid"), int("expires_at")],
    ),
    CopiedTable::new("tag", 3, &[text("tenant"), text("tag"), bytes("uid")]),
    CopiedTable::new("content", 1, CONTENT).bytes(
        "CASE WHEN raw_blob IS NULL THEN size ELSE 0 END \
         + CASE WHEN payload_blob IS NULL THEN COALESCE(payload_size, 0) ELSE 0 END",
    ),
    CopiedTable::new(
        "stored_blob",
        1,
        &[
            bytes("digest"),
            int("generation"),
            text("name"),
            int("size"),
            int("reserved_at"),
            int("condemned"),
        ],
    )
    .summed("generation + condemned"),
    CopiedTable::new(
        "link",
        2,
        &[
            bytes("uid"),
            text("blob"),
            text("tenant"),
            text("filename"),
            text("content_type"),
            int("size"),
            int("expires_at"),
        ],
    ),
    CopiedTable::new(
        "template",
        3,
        &[
            text("tenant"),
            text("name"),
            int("version"),
            text("subject"),
            text("html"),
            text("text"),
            text("mjml"),
            text("description"),
            text("sample"),
            int("created_at"),
            text("layout"),
            int("inline_css"),
        ],
    )
    .bytes(TEMPLATE_BYTES),
    CopiedTable::new(
        "known_recipient",
        2,
        &[
            text("tenant"),
            bytes("id"),
            text("external_id"),
            int("live"),
            text("name"),
            text("address"),
            bytes("personal_number"),
            bytes("personal_digest"),
            text("personal_masked"),
            int("version"),
            int("created_at"),
            int("updated_at"),
            int("deleted_at"),
            text("locale"),
        ],
    )
    .summed("version"),
    CopiedTable::new(
        "dkim_key",
        3,
        &[
            text("tenant"),
            text("domain"),
            text("selector"),
            int("algorithm"),
            bytes("private"),
            text("public"),
            int("active"),
            int("created_at"),
        ],
    )
    .summed("active"),
    CopiedTable::new(
        "preparation",
        1,
        &[bytes("uid"), text("tenant"), int("due_at"), int("tries"), text("settled")],
    )
    .summed("tries"),
    CopiedTable::new("subscriber", 2, SUBSCRIBER).summed("version + deleted"),
    CopiedTable::new(
        "journal",
        1,
        &[int("id"), text("tenant"), int("at"), int("position"), bytes("entries")],
    )
    .summed("COALESCE(position, 0)"),
    CopiedTable::new("progress", 1, &[text("name"), int("position")])
        .summed("position")
        .seeds("name IN ('sequence', 'fan_out')"),
    CopiedTable::new("notification", 4, NOTIFICATION).summed("state + tries"),
    CopiedTable::new(
        "statistic",
        3,
        &[
            text("tenant"),
            int("hour"),
            text("account"),
            int("accepted"),
            int("sent"),
            int("failed"),
            int("invalid"),
            int("deferred"),
            int("bounced"),
            int("complained"),
            int("suppressed"),
            int("queue_ms"),
        ],
    )
    .summed("accepted + sent + failed"),
    CopiedTable::new("stream_statistic", 3, STREAM_STATISTIC).summed("accepted + sent + failed"),
    CopiedTable::new("suppression_change", 1, &[bytes("uid"), text("tenant"), text("pattern"), int("at")]),
    CopiedTable::new(
        "tombstone",
        1,
        &[bytes("uid"), text("tenant"), int("status"), bytes("recipients"), int("expires_at")],
    ),
    CopiedTable::new(
        "mailbox",
        2,
        &[
            text("tenant"),
            text("id"),
            bytes("place"),
            int("port"),
            text("settings"),
            bytes("secret"),
            int("version"),
            int("created_at"),
            int("updated_at"),
        ],
    )
    .summed("version"),
    CopiedTable::new(
        "mailbox_state",
        2,
        &[
            text("tenant"),
            text("mailbox"),
            int("uid_validity"),
            int("last_uid"),
            int("not_before"),
            int("old_through"),
            int("uid_next"),
            int("scanned_at"),
            text("error"),
            int("error_since"),
            int("deleted"),
        ],
    )
    .summed("COALESCE(last_uid, 0) + deleted"),
    CopiedTable::new(
        "rule",
        2,
        &[
            text("tenant"),
            text("id"),
            text("mailbox"),
            int("position"),
            int("active"),
            text("content"),
            int("version"),
            int("created_at"),
            int("updated_at"),
        ],
    )
    .summed("version"),
    CopiedTable::new(
        "contact",
        2,
        &[
            text("tenant"),
            text("id"),
            text("name"),
            bytes("name_key"),
            text("addresses"),
            int("version"),
            int("created_at"),
            int("updated_at"),
        ],
    )
    .summed("version"),
    CopiedTable::new(
        "provider_hook",
        2,
        &[
            text("tenant"),
            text("account"),
            text("provider"),
            bytes("token"),
            text("settings"),
            bytes("secret"),
            int("version"),
            int("created_at"),
            int("updated_at"),
        ],
    )
    .summed("version"),
    CopiedTable::new("provider_event", 1, PROVIDER_EVENT)
        // The time makes it a 64-bit number everywhere.
        .bytes("0 * created_at + LENGTH(raw)")
        .summed("state + tries + lost_leases"),
    CopiedTable::new("inbound_seen", 3, &[text("tenant"), text("mailbox"), bytes("digest")]),
    CopiedTable::new("inbound_message", 3, &[bytes("uid"), text("rule"), bytes("message")]),
    CopiedTable::new("inbound_body", 1, &[bytes("uid"), int("size"), bytes("raw"), text("raw_blob")])
        .bytes("CASE WHEN raw_blob IS NULL THEN size ELSE 0 END"),
    CopiedTable::new("inbound", 1, INBOUND)
        .summed("state + tries + reminders + event_seq + lost_leases + attempts"),
    CopiedTable::new(
        "pec_receipt",
        2,
        &[
            bytes("uid"),
            bytes("digest"),
            bytes("inbound"),
            text("kind"),
            text("address"),
            int("at"),
            text("signature"),
            text("detail"),
            int("size"),
            bytes("raw"),
            text("raw_blob"),
        ],
    )
    .bytes("CASE WHEN raw_blob IS NULL THEN size ELSE 0 END"),
    CopiedTable::new("pec_wait", 1, &[bytes("uid"), int("due_at")]),
    CopiedTable::new(
        "recipient",
        2,
        &[
            bytes("uid"),
            int("position"),
            int("kind"),
            text("address"),
            int("status"),
            int("smtp_code"),
            text("enhanced"),
            text("reply"),
            int("outcome"),
            text("bounce"),
        ],
    )
    .summed("status + COALESCE(outcome, 0)"),
    CopiedTable::new(
        "event",
        2,
        &[bytes("uid"), int("seq"), int("at"), int("kind"), text("data"), text("more")],
    ),
    CopiedTable::new(
        "attempt",
        2,
        &[
            bytes("uid"),
            int("number"),
            int("started_at"),
            int("duration_ms"),
            text("account"),
            text("remote"),
            text("outcome"),
            int("smtp_code"),
            text("enhanced"),
            text("reply"),
            text("provider_message_id"),
        ],
    ),
    CopiedTable::new("message", 1, MESSAGE).summed("version + event_seq + attempt + status"),
];
