//! The texts of the views, written once and rendered for each database.
//!
//! A view is a file in `sql/`. What differs between databases is in braces, as `{at:m.created_at}`; so are
//! fragments that several views share (`{id}`), and tables (`{message}`; `{rows:message}` if the view shows
//! their rows). Names in double quotes get the quotes of the database.

use postway_domain::{
    MessageStatus,
    message::reason::{NO_REASON, NO_RECEIPT},
    reference::{BOUNCED, moves},
};

use super::{fragments::SHARED, status_words};

/// The views in the order in which they are created.
pub(crate) const VIEWS: [(&str, &str); 8] = [
    ("emails", include_str!("sql/emails.sql")),
    ("email_statuses", include_str!("sql/email_statuses.sql")),
    ("messages", include_str!("sql/messages.sql")),
    ("monitored_emails", include_str!("sql/monitored_emails.sql")),
    ("monitored_emails_tasks", include_str!("sql/monitored_emails_tasks.sql")),
    ("email_outbox", include_str!("sql/email_outbox.sql")),
    ("email_logs", include_str!("sql/email_logs.sql")),
    ("email_events", include_str!("sql/email_events.sql")),
];

/// The index that finds a message by the id that the views show.
pub(crate) const INDEX: &str = "content_view_id";
/// MySQL has the index on a column, because MariaDB has no indexes on expressions.
pub(crate) const INDEX_COLUMN: &str = "view_id";
/// The mark that identifies a view as ours.
pub(crate) const MARK: &str = "made by postway views install";

/// The SQL dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ViewsDialect {
    Sqlite,
    Postgres,
    Mysql,
}

/// The location of views, and of the tables they show.
#[derive(Clone, Debug)]
pub(crate) struct ViewsLocation {
    pub dialect: ViewsDialect,
    /// The schema or database of the views; the prefix of their names on SQLite.
    pub schema: String,
    /// The database of our tables, on MySQL.
    pub database: String,
    /// Whether messages have [`INDEX_COLUMN`], on MySQL.
    pub has_column: bool,
}

impl ViewsLocation {
    /// A view's name as statements write it.
    pub fn name(&self, view: &str) -> String {
        self.quoted(&match self.dialect {
            ViewsDialect::Sqlite => format!("\"{}_{view}\"", self.schema),
            ViewsDialect::Postgres | ViewsDialect::Mysql => format!("\"{}\".\"{view}\"", self.schema),
        })
    }

    /// Creates the schema.
    pub fn make_schema(&self) -> Option<String> {
        let schema = &self.schema;
        match self.dialect {
            ViewsDialect::Sqlite => None,
            ViewsDialect::Postgres => Some(format!("CREATE SCHEMA IF NOT EXISTS \"{schema}\";\n")),
            ViewsDialect::Mysql => Some(format!("CREATE DATABASE IF NOT EXISTS `{schema}`;\n")),
        }
    }

    /// Creates the index. PostgreSQL does it outside of a transaction, concurrently with writes.
    pub fn make_index(&self) -> String {
        let by_id = self.expand("COALESCE(client_id, {uuid:uid})", "");
        match self.dialect {
            ViewsDialect::Sqlite => format!("CREATE INDEX IF NOT EXISTS {INDEX} ON content ({by_id});\n"),
            ViewsDialect::Postgres => {
                format!("CREATE INDEX CONCURRENTLY IF NOT EXISTS {INDEX} ON content (({by_id}));\n")
            }
            ViewsDialect::Mysql => format!(
                "ALTER TABLE `{}`.content ADD COLUMN {INDEX_COLUMN} VARCHAR(128) CHARACTER SET utf8mb4 \
                 COLLATE utf8mb4_bin GENERATED ALWAYS AS ({by_id}) VIRTUAL, ADD KEY {INDEX} ({INDEX_COLUMN});\n",
                self.database
            ),
        }
    }

    /// Removes the index.
    pub fn drop_index(&self) -> String {
        match self.dialect {
            ViewsDialect::Sqlite => format!("DROP INDEX IF EXISTS {INDEX};\n"),
            ViewsDialect::Postgres => format!("DROP INDEX CONCURRENTLY IF EXISTS {INDEX};\n"),
            ViewsDialect::Mysql => format!(
                "ALTER TABLE `{}`.content DROP KEY {INDEX}, DROP COLUMN {INDEX_COLUMN};\n",
                self.database
            ),
        }
    }

    /// Creates or recreates the views.
    pub fn make_views(&self) -> String {
        let mut script = match self.dialect {
            ViewsDialect::Postgres => include_str!("sql/payload.sql").replace("{schema}", &self.schema),
            ViewsDialect::Sqlite | ViewsDialect::Mysql => String::new(),
        };
        for (view, text) in VIEWS {
            let (name, text) = (self.name(view), self.quoted(&self.expand(text, view)));
            script.push_str(&match self.dialect {
                ViewsDialect::Sqlite => {
                    format!("DROP VIEW IF EXISTS {name};\nCREATE VIEW {name} AS /* {MARK} */\n{text};\n")
                }
                ViewsDialect::Postgres => format!(
                    "CREATE OR REPLACE VIEW {name} AS\n{text};\nCOMMENT ON VIEW {name} IS '{MARK}';\n"
                ),
                ViewsDialect::Mysql => format!("CREATE OR REPLACE VIEW {name} AS\n{text};\n"),
            });
        }
        script
    }

    /// Removes the views.
    pub fn drop_views(&self) -> String {
        VIEWS.iter().rev().map(|(view, _)| self.drop_view(view)).collect()
    }

    /// Removes one view.
    pub fn drop_view(&self, view: &str) -> String {
        format!("DROP VIEW IF EXISTS {};\n", self.name(view))
    }

    /// Removes the functions that PostgreSQL's views call.
    pub fn drop_functions(&self) -> String {
        let drop = |name| format!("DROP FUNCTION IF EXISTS \"{}\".{name}(BYTEA);\n", self.schema);
        ["payload_text", "payload_html"].map(drop).concat()
    }

    fn quoted(&self, text: &str) -> String {
        match self.dialect {
            ViewsDialect::Mysql => text.replace('"', "`"),
            ViewsDialect::Sqlite | ViewsDialect::Postgres => text.to_owned(),
        }
    }

    /// Renders everything in braces, the innermost first.
    fn expand(&self, text: &str, view: &str) -> String {
        let mut rendered = String::with_capacity(4 * text.len());
        let mut rest = text;
        while let Some(start) = rest.find('{') {
            rendered.push_str(&rest[..start]);
            rest = &rest[start + 1..];
            let mut depth = 1;
            let end = rest.find(|letter| {
                depth += i32::from(letter == '{') - i32::from(letter == '}');
                depth == 0
            });
            // An opening brace without its end stays as it is; a test checks that there is none.
            let Some(end) = end else { break };
            rendered.push_str(&self.part(&self.expand(&rest[..end], view), view));
            rest = &rest[end + 1..];
        }
        rendered + rest.trim_end()
    }

    /// The rendering of `name:argument`.
    fn part(&self, part: &str, view: &str) -> String {
        let (name, argument) = part.split_once(':').unwrap_or((part, ""));
        // The last argument is a name, and the one before it may be any expression.
        let (first, last) = argument.rsplit_once(':').unwrap_or((argument, ""));
        let dialect = self.dialect;
        match (name, dialect) {
            ("words", _) => self.words(view),
            // MySQL writes through a view to every table that it names; never through a subquery, which it
            // reads as the table.
            ("rows", ViewsDialect::Mysql) => format!("(SELECT * FROM {})", self.table(argument)),
            ("rows", _) => self.table(argument),
            ("ended", _) => codes(MessageStatus::is_final),
            ("unsent", _) => codes(|status| status.is_final() && status != MessageStatus::Sent),
            ("moves", _) => moves().map(|kind| kind.code().to_string()).collect::<Vec<_>>().join(", "),
            ("later", ViewsDialect::Sqlite) => format!("MAX({first}, COALESCE({last}, 0))"),
            ("later", _) => format!("GREATEST({first}, COALESCE({last}, 0))"),
            // A blob's path below the root of the blob storage.
            ("file", ViewsDialect::Mysql) => {
                format!("CONCAT(SUBSTR({argument}, 1, 2), '/', SUBSTR({argument}, 3, 2), '/', {argument})")
            }
            ("file", _) => {
                format!("substr({argument}, 1, 2) || '/' || substr({argument}, 3, 2) || '/' || {argument}")
            }
            ("id", ViewsDialect::Mysql) if self.has_column => format!("c.{INDEX_COLUMN}"),
            ("id", _) => self.expand("COALESCE(c.client_id, {uuid:c.uid})", view),
            ("no_receipt", _) => format!("'{NO_RECEIPT}'"),
            ("unsaid", _) => format!("'{NO_REASON}'"),
            ("bounced", _) => format!("'{BOUNCED}'"),
            ("now", ViewsDialect::Postgres) => {
                "(extract(epoch FROM clock_timestamp()) * 1000)::bigint".to_owned()
            }
            ("now", ViewsDialect::Sqlite) => {
                "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)".to_owned()
            }
            ("now", ViewsDialect::Mysql) => {
                let start = "TIMESTAMP'1970-01-01 00:00:00.000000'";
                format!("(TIMESTAMPDIFF(MICROSECOND, {start}, UTC_TIMESTAMP(3)) DIV 1000)")
            }
            ("text", ViewsDialect::Mysql) => "CHAR".to_owned(),
            ("text", _) => "TEXT".to_owned(),
            // Joins words before messages. MySQL knows only the average number of messages of a status, which
            // is high, and would read them all to find a rare status.
            ("then", ViewsDialect::Mysql) => "STRAIGHT_JOIN".to_owned(),
            ("then", _) => "JOIN".to_owned(),
            // Without a hint SQLite assumes that every status is rare, and prefers its index to that of ids.
            ("same", ViewsDialect::Sqlite) => format!("likelihood({first} = {last}, 0.5)"),
            ("same", _) => format!("{first} = {last}"),
            ("uuid", ViewsDialect::Postgres) => format!("encode({argument}, 'hex')::uuid::text"),
            ("uuid", ViewsDialect::Sqlite) => {
                format!(
                    "CASE WHEN {argument} IS NOT NULL THEN lower({}) END",
                    pieces(argument, " || '-' || ")
                )
            }
            ("uuid", ViewsDialect::Mysql) => format!("LOWER(CONCAT({}))", pieces(argument, ", '-', ")),
            ("at", ViewsDialect::Postgres) => format!("to_timestamp(({argument}) / 1000.0)"),
            ("at", ViewsDialect::Sqlite) => {
                format!("strftime('%Y-%m-%d %H:%M:%f', ({argument}) / 1000.0, 'unixepoch')")
            }
            ("at", ViewsDialect::Mysql) => {
                let start = "TIMESTAMP'1970-01-01 00:00:00.000000'";
                format!("TIMESTAMPADD(MICROSECOND, ({argument}) * 1000, {start})")
            }
            ("seconds", ViewsDialect::Mysql) => format!("({argument}) DIV 1000"),
            ("seconds", _) => format!("({argument}) / 1000"),
            ("json", ViewsDialect::Postgres) => format!("({} ->> '{last}')", document(first)),
            ("json", ViewsDialect::Sqlite) => format!("json_extract({first}, '$.{last}')"),
            ("json", ViewsDialect::Mysql) => {
                let value = format!("JSON_EXTRACT({first}, '$.{last}')");
                format!("CASE WHEN JSON_TYPE({value}) <> 'NULL' THEN JSON_UNQUOTE({value}) END")
            }
            ("flag", ViewsDialect::Postgres) => format!("({} ->> '{last}')::boolean", document(first)),
            ("flag", ViewsDialect::Sqlite) => format!("json_extract({first}, '$.{last}')"),
            ("flag", ViewsDialect::Mysql) => {
                format!("(JSON_UNQUOTE(JSON_EXTRACT({first}, '$.{last}')) = 'true')")
            }
            ("object", _) => self.object(first, last),
            ("payload", ViewsDialect::Postgres) => {
                self.unless_sensitive("TRUE", |it| self.function("text", it))
            }
            ("payload", _) => self.unless_sensitive("JSON_VALID({payload_chars})", str::to_owned),
            ("html", ViewsDialect::Postgres) => self.unless_sensitive("TRUE", |it| self.function("html", it)),
            ("html", _) => {
                let html = |chars: &str| self.expand(&format!("{{json:{chars}:html}}"), view);
                self.unless_sensitive("JSON_VALID({payload_chars})", html)
            }
            ("payload_chars", ViewsDialect::Postgres) => "c.payload".to_owned(),
            ("payload_chars", ViewsDialect::Sqlite) => "CAST(c.payload AS TEXT)".to_owned(),
            ("payload_chars", ViewsDialect::Mysql) => "CONVERT(c.payload USING utf8mb4)".to_owned(),
            (table, _) => match SHARED.iter().find(|(name, _)| *name == table) {
                Some((_, text)) => self.expand(text, view),
                None => self.table(table),
            },
        }
    }

    /// One of our tables.
    fn table(&self, name: &str) -> String {
        match self.dialect {
            ViewsDialect::Mysql => format!("\"{}\".\"{name}\"", self.database),
            ViewsDialect::Sqlite | ViewsDialect::Postgres => format!("\"{name}\""),
        }
    }

    /// A part of a request; nothing of a sensitive one.
    fn unless_sensitive(&self, condition: &str, show: impl FnOnce(&str) -> String) -> String {
        let (condition, chars) = (self.expand(condition, ""), self.part("payload_chars", ""));
        format!("CASE WHEN c.\"sensitive\" = 0 AND {condition} THEN {} END", show(&chars))
    }

    fn function(&self, what: &str, argument: &str) -> String {
        format!("\"{}\".payload_{what}({argument})", self.schema)
    }

    /// A JSON object of `theirs=ours` pairs out of another.
    fn object(&self, document_text: &str, pairs: &str) -> String {
        let pairs = pairs.split(',').filter_map(|pair| pair.split_once('='));
        let pair = |(theirs, ours): (&str, &str)| match self.dialect {
            ViewsDialect::Postgres => format!("'{theirs}', {} -> '{ours}'", document(document_text)),
            ViewsDialect::Sqlite => format!("'{theirs}', {document_text} -> '$.{ours}'"),
            ViewsDialect::Mysql => format!("'{theirs}', JSON_EXTRACT({document_text}, '$.{ours}')"),
        };
        let pairs = pairs.map(pair).collect::<Vec<_>>().join(", ");
        let function =
            if self.dialect == ViewsDialect::Postgres { "json_build_object" } else { "json_object" };
        format!("{function}({pairs})")
    }

    fn words(&self, view: &str) -> String {
        let row = |row: &status_words::StatusWordRow| {
            format!(
                "SELECT {} AS code, {} AS wait, {} AS mark, '{}' AS word",
                row.code, row.wait, row.mark, row.word
            )
        };
        format!(
            "(\n    {}\n)",
            status_words::rows(view).iter().map(row).collect::<Vec<_>>().join(" UNION ALL\n    ")
        )
    }
}

/// The codes of some statuses, for a list.
fn codes(of: impl Fn(MessageStatus) -> bool) -> String {
    let chosen = MessageStatus::ALL.iter().filter(|status| of(**status));
    chosen.map(|status| status.code().to_string()).collect::<Vec<_>>().join(", ")
}

/// The hexadecimal pieces of 16 bytes.
fn pieces(bytes: &str, between: &str) -> String {
    let piece = |(start, length): (u8, u8)| format!("hex(substr({bytes}, {start}, {length}))");
    [(1, 4), (5, 2), (7, 2), (9, 2), (11, 6)].map(piece).join(between)
}

/// JSON for PostgreSQL, which cannot hold NUL in a text.
fn document(text: &str) -> String {
    format!("replace({text}, '\\u0000', '\\ufffd')::json")
}
