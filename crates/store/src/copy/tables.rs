//! What is copied. A new table or column of a migration is added here; a test compares the list with the schema of each
//! database, and fails until it is.

/// What a column keeps, whatever the database calls that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A 64-bit number.
    Int,
    /// Yes or no.
    Bool,
    /// UTF-8.
    Text,
    /// Bytes.
    Bytes,
}

/// A column.
#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    pub name: &'static str,
    pub kind: Kind,
}

/// A table.
#[derive(Debug)]
pub(super) struct Table {
    pub name: &'static str,
    /// How many of the columns, from the first, are the primary key.
    pub key: usize,
    /// Every column that is not generated.
    pub columns: &'static [Column],
    /// How many bytes a row takes, in SQL, where a full page of rows would not fit into memory.
    pub bytes: Option<&'static str>,
    /// What is summed besides counting rows, in SQL: numbers that a change of a row raises. `0` where there are none.
    pub summed: &'static str,
    /// Which rows a first start lays down, in SQL: these may be in the target, and are replaced.
    pub seeds: Option<&'static str>,
}

impl Table {
    const fn new(name: &'static str, key: usize, columns: &'static [Column]) -> Self {
        Self { name, key, columns, bytes: None, summed: "0", seeds: None }
    }

    const fn bytes(self, sql: &'static str) -> Self {
        Self { bytes: Some(sql), ..self }
    }

    const fn summed(self, sql: &'static str) -> Self {
        Self { summed: sql, ..self }
    }

    const fn seeds(self, sql: &'static str) -> Self {
        Self { seeds: Some(sql), ..self }
    }

    /// The columns of the primary key.
    pub fn key_columns(&self) -> &'static [Column] {
        &self.columns[..self.key]
    }
}

const fn int(name: &'static str) -> Column {
    Column { name, kind: Kind::Int }
}

const fn bool(name: &'static str) -> Column {
    Column { name, kind: Kind::Bool }
}

const fn text(name: &'static str) -> Column {
    Column { name, kind: Kind::Text }
}

const fn bytes(name: &'static str) -> Column {
    Column { name, kind: Kind::Bytes }
}

/// How large a template is, about: its characters. The version makes it a 64-bit number everywhere.
const TEMPLATE_BYTES: &str = "0 * version + LENGTH(subject) + COALESCE(LENGTH(html), 0) + COALESCE(LENGTH(text), 0) \
     + COALESCE(LENGTH(mjml), 0) + COALESCE(LENGTH(sample), 0)";

/// Every table that is copied, in order: what others refer to before them, and the queue last, so that nothing can be
/// claimed before all of it is there.
pub(super) static TABLES: &[Table] = &[
    Table::new(
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
    Table::new(
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
        ],
    ),
    Table::new("suspension", 3, &[text("tenant"), int("kind"), text("code"), int("since")]),
    Table::new(
        "suppression",
        2,
        &[text("tenant"), text("address"), int("reason"), text("note"), int("created_at"), int("expires_at")],
    ),
    Table::new(
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
        ],
    ),
    Table::new(
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
    Table::new("spent", 4, &[text("tenant"), text("account"), int("span"), int("bucket"), int("used")])
        .summed("used"),
    Table::new("collapse", 2, &[text("tenant"), text("name"), bytes("uid"), bytes("previous")]),
    Table::new(
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
    Table::new("lane", 1, &[bytes("id"), text("tenant"), text("account"), int("priority"), text("batch")]),
    Table::new(
        "dedup",
        3,
        &[text("tenant"), int("kind"), text("key"), bytes("fingerprint"), bytes("uid"), int("expires_at")],
    ),
    Table::new("tag", 3, &[text("tenant"), text("tag"), bytes("uid")]),
    Table::new(
        "content",
        1,
        &[
            bytes("uid"),
            text("client_id"),
            text("sender"),
            text("message_id"),
            text("subject"),
            text("request_id"),
            text("external_id"),
            text("tags"),
            text("metadata"),
            bool("eight_bit"),
            bool("smtputf8"),
            int("size"),
            bytes("raw"),
            text("raw_blob"),
            text("payload_blob"),
            int("payload_size"),
            int("sensitive"),
            bytes("recipient_id"),
            bytes("payload"),
        ],
    )
    .bytes(
        "CASE WHEN raw_blob IS NULL THEN size ELSE 0 END \
         + CASE WHEN payload_blob IS NULL THEN COALESCE(payload_size, 0) ELSE 0 END",
    ),
    Table::new(
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
    Table::new(
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
    Table::new(
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
        ],
    )
    .bytes(TEMPLATE_BYTES),
    Table::new(
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
        ],
    )
    .summed("version"),
    Table::new(
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
    Table::new(
        "preparation",
        1,
        &[bytes("uid"), text("tenant"), int("due_at"), int("tries"), text("settled")],
    )
    .summed("tries"),
    Table::new(
        "subscriber",
        2,
        &[
            text("tenant"),
            text("id"),
            int("kind"),
            text("url"),
            text("events"),
            bytes("secrets"),
            int("active"),
            text("disabled_reason"),
            text("description"),
            int("quiet_until"),
            int("deleted"),
            int("version"),
            int("created_at"),
            int("updated_at"),
        ],
    )
    .summed("version + deleted"),
    Table::new("journal", 1, &[int("id"), text("tenant"), int("at"), int("position"), bytes("entries")])
        .summed("COALESCE(position, 0)"),
    Table::new("progress", 1, &[text("name"), int("position")])
        .summed("position")
        .seeds("name IN ('sequence', 'fan_out')"),
    Table::new(
        "notification",
        4,
        &[
            text("tenant"),
            text("subscriber"),
            bytes("uid"),
            int("seq"),
            int("kind"),
            int("deferred"),
            int("state"),
            int("due_at"),
            int("tries"),
            bytes("lease_node"),
            int("lease_token"),
            int("lease_until"),
            int("created_at"),
            int("settled_at"),
            int("called_at"),
            int("latency_ms"),
            int("status"),
            text("request"),
            text("answer"),
        ],
    )
    .summed("state + tries"),
    Table::new(
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
    Table::new(
        "tombstone",
        1,
        &[bytes("uid"), text("tenant"), int("status"), bytes("recipients"), int("expires_at")],
    ),
    Table::new(
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
        ],
    )
    .summed("status"),
    Table::new("event", 2, &[bytes("uid"), int("seq"), int("at"), int("kind"), text("data")]),
    Table::new(
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
    Table::new(
        "message",
        1,
        &[
            bytes("uid"),
            text("tenant"),
            bytes("lane"),
            int("status"),
            int("wait"),
            int("due_at"),
            int("attempt"),
            int("retries"),
            int("doubts"),
            int("lost_leases"),
            int("on_doubt"),
            bytes("lease_node"),
            int("lease_token"),
            int("lease_until"),
            bool("wire_committed"),
            int("version"),
            int("event_seq"),
            int("created_at"),
            int("updated_at"),
            int("expires_at"),
            int("sent_at"),
            int("failed_at"),
            bool("exhausted"),
            text("error"),
        ],
    )
    .summed("version + event_seq + attempt + status"),
];

/// Tables that are not copied: the schema's own record, the copy's own, counters that are made anew, and what belongs to
/// running processes.
#[cfg(test)]
pub(super) const NOT_COPIED: &[&str] =
    &["schema_migration", "copy_progress", "tally", "node", "duty", "writer_mark"];
