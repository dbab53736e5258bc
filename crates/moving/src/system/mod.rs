//! The five systems: the tables of each, and the verdicts on their rows.
//!
//! A system is a list of steps. A step reads rows, and a function gives each row its verdicts. It has no side
//! effects, except that it reads files that a row names.

mod reference_000;
mod reference_001;
mod reference_002;
mod reference_003;
mod reference_004;

use std::{fmt, str::FromStr};

use futures::{
    StreamExt, TryStreamExt,
    stream::{self, BoxStream},
};
use serde_json::{Map, Value};

use crate::{
    column::{MatchedOldTable, OldDatabaseDialect, OldTableSchema},
    database::{OldDatabase, OldTableSelect},
    error::MovingError,
    payload::PayloadFolder,
    row::OldTableRow,
    verdict::{
        CarriedKind, CarriedRow, HistoryRows, MovingVerdict, RowFault, RowFormat, RowLocation, UndecidedRow,
    },
};

/// A system that users migrate from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReferenceSystem {
    /// `000`: an outbox with states and callbacks.
    Outbox,
    /// `001`: a message proxy for many tenants.
    Proxy,
    /// `002`: an IMAP monitor that forwards each mail once.
    Monitor,
    /// `003`: account and token mails.
    Tokens,
    /// `004`: a validating pipeline.
    Pipeline,
}

impl ReferenceSystem {
    /// All systems, in order.
    pub const ALL: [Self; 5] = [Self::Outbox, Self::Proxy, Self::Monitor, Self::Tokens, Self::Pipeline];

    /// Its number.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Outbox => "000",
            Self::Proxy => "001",
            Self::Monitor => "002",
            Self::Tokens => "003",
            Self::Pipeline => "004",
        }
    }
}

impl ReferenceSystem {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Outbox => "outbox",
            Self::Proxy => "proxy",
            Self::Monitor => "monitor",
            Self::Tokens => "tokens",
            Self::Pipeline => "pipeline",
        }
    }
}

impl fmt::Display for ReferenceSystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for ReferenceSystem {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|system| system.as_str() == text || system.name() == text);
        found.ok_or("must be outbox, proxy, monitor, tokens or pipeline (or 000, 001, 002, 003, 004)")
    }
}

/// The IMAP hosts of mailboxes, which 002 has in its program and not in its table.
#[derive(Clone, Debug, Default)]
pub struct ImapHosts {
    /// The host of every mailbox.
    pub host: Option<String>,
    /// The hosts of single domains.
    pub by_domain: Vec<(String, String)>,
    /// The port of all hosts.
    pub port: Option<u16>,
    /// The TLS mode of the connections.
    pub tls: Option<String>,
}

impl ImapHosts {
    fn host_for(&self, address: &str) -> Option<&str> {
        let domain = address.rsplit_once('@').map_or("", |(_, domain)| domain);
        let own = self.by_domain.iter().find(|(of, _)| of.eq_ignore_ascii_case(domain));
        own.map(|(_, host)| host.as_str()).or(self.host.as_deref())
    }
}

/// Settings that the old database does not contain.
#[derive(Clone, Debug, Default)]
pub struct MovingOptions {
    /// 000: the folder of the requests.
    pub payloads: Option<PayloadFolder>,
    /// 002: the hosts of the mailboxes.
    pub hosts: ImapHosts,
    /// Whether mail that may have been sent already carries over.
    pub resend_doubtful: bool,
    /// 001: whether addresses with a hard bounce are suppressed.
    pub suppress_hard_bounces: bool,
}

/// An open old system.
pub struct OldSystem {
    database: OldDatabase,
    options: MovingOptions,
    layout: SystemLayout,
}

/// The steps that read a system's tables, and the faults of the tables.
#[derive(Default)]
struct SystemLayout {
    steps: Vec<TableReadStep>,
    faults: Vec<RowFault>,
    unread: Vec<(&'static str, Vec<String>)>,
}

/// One statement, and the function that judges its rows.
struct TableReadStep {
    table: &'static str,
    columns: Vec<(&'static str, String)>,
    from: String,
    judge: fn(OldTableRow, &MovingOptions) -> Vec<MovingVerdict>,
}

impl OldSystem {
    /// Opens a system and finds its tables.
    pub async fn open(
        mut database: OldDatabase,
        system: ReferenceSystem,
        options: MovingOptions,
    ) -> Result<Self, MovingError> {
        let mut layout = SystemLayout::default();
        match system {
            ReferenceSystem::Outbox => reference_000::add_steps(&mut database, &options, &mut layout).await?,
            ReferenceSystem::Proxy => reference_001::add_steps(&mut database, &mut layout).await?,
            ReferenceSystem::Monitor => {
                reference_002::add_steps(&mut database, &options, &mut layout).await?
            }
            ReferenceSystem::Tokens => reference_003::add_steps(&mut database, &mut layout).await?,
            ReferenceSystem::Pipeline => reference_004::add_steps(&mut database, &mut layout).await?,
        }
        Ok(Self { database, options, layout })
    }

    /// The faults of the tables themselves. If there are any, no row is read.
    pub fn faults(&self) -> &[RowFault] {
        &self.layout.faults
    }

    /// Columns that are not read, by table.
    pub fn unread(&self) -> &[(&'static str, Vec<String>)] {
        &self.layout.unread
    }

    /// The number of steps.
    pub fn steps(&self) -> usize {
        if self.layout.faults.is_empty() { self.layout.steps.len() } else { 0 }
    }

    /// Reads the rows of a step and returns their verdicts, one by one.
    pub fn verdicts(&mut self, step: usize) -> BoxStream<'_, Result<MovingVerdict, MovingError>> {
        let Self { database, options, layout } = self;
        let step = &layout.steps[step];
        let select =
            OldTableSelect { table: step.table, columns: step.columns.clone(), from: step.from.clone() };
        let judge = step.judge;
        let rows = database.rows(&select);
        rows.map_ok(move |row| stream::iter(judge(row, options).into_iter().map(Ok))).try_flatten().boxed()
    }
}

impl SystemLayout {
    /// Finds a required table.
    async fn find_needed(
        &mut self,
        database: &mut OldDatabase,
        table: OldTableSchema,
    ) -> Result<Option<MatchedOldTable>, MovingError> {
        let found = self.find_optional(database, table).await?;
        if found.is_none() {
            let place = RowLocation { table: table.name.to_owned(), key: String::new() };
            let message = "the table is missing: is this the old system's database, fully migrated?";
            self.faults.push(RowFault::new(&place, "", message));
        }
        Ok(found)
    }

    /// Finds an optional table.
    async fn find_optional(
        &mut self,
        database: &mut OldDatabase,
        table: OldTableSchema,
    ) -> Result<Option<MatchedOldTable>, MovingError> {
        let (found, faults) = database.find(table).await?;
        self.faults.extend(faults);
        if let Some(found) = &found
            && !found.unread.is_empty()
        {
            self.unread.push((table.name, found.unread.clone()));
        }
        Ok(found)
    }

    /// Adds a step that reads rows.
    fn add_rows(
        &mut self,
        table: &'static str,
        columns: Vec<(&'static str, String)>,
        from: String,
        judge: fn(OldTableRow, &MovingOptions) -> Vec<MovingVerdict>,
    ) {
        self.steps.push(TableReadStep { table, columns, from, judge });
    }

    /// Adds a step that counts rows by the value of an expression.
    fn add_count(
        &mut self,
        table: &'static str,
        class: String,
        from: &str,
        judge: fn(OldTableRow, &MovingOptions) -> Vec<MovingVerdict>,
    ) {
        let from = format!("FROM (SELECT {class} AS class {from}) c GROUP BY c.class ORDER BY c.class");
        let columns = [("class", "c.class"), ("count", "COUNT(*)")].map(|(name, sql)| (name, sql.to_owned()));
        self.add_rows(table, columns.to_vec(), from, judge);
    }
}

/// A class of rows and its count, as `add_count` reads them.
fn counted(row: &mut OldTableRow) -> (String, u64) {
    let class = row.text("class").unwrap_or_default();
    let count = row.number("count").and_then(|count| u64::try_from(count).ok()).unwrap_or_default();
    (class, count)
}

/// The row as it carries over, or its faults.
fn carry(
    row: OldTableRow,
    kind: CarriedKind,
    form: RowFormat,
    tenant: Option<String>,
    body: Map<String, Value>,
) -> Vec<MovingVerdict> {
    if !row.is_sound() {
        return wrong(row);
    }
    let place = row.place().clone();
    vec![MovingVerdict::Carry(Box::new(CarriedRow { kind, place, tenant, form, body }))]
}

fn wrong(row: OldTableRow) -> Vec<MovingVerdict> {
    row.faults().into_iter().map(MovingVerdict::Wrong).collect()
}

fn leave(row: &OldTableRow, why: impl Into<String>) -> Vec<MovingVerdict> {
    vec![MovingVerdict::Leave(UndecidedRow { place: row.place().clone(), why: why.into() })]
}

fn stay(table: &str, what: impl Into<String>, count: u64, why: impl Into<String>) -> Vec<MovingVerdict> {
    match count {
        0 => Vec::new(),
        _ => {
            vec![MovingVerdict::Stay(HistoryRows {
                table: table.to_owned(),
                what: what.into(),
                count,
                why: why.into(),
            })]
        }
    }
}

/// Inserts a value if there is one.
fn put(body: &mut Map<String, Value>, name: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        body.insert(name.to_owned(), value.into());
    }
}

/// A column of a table that is read under the alias `r`.
fn column(found: &MatchedOldTable, dialect: OldDatabaseDialect, name: &str) -> String {
    found.sql(dialect, "r", name)
}

/// `FROM` a table under the alias `r`.
fn from(found: &MatchedOldTable, dialect: OldDatabaseDialect) -> String {
    format!("FROM {} r", crate::column::quoted(dialect, found.table.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::OldCellValue;

    /// A row of texts.
    pub(super) fn row(table: &str, cells: &[(&'static str, &str)]) -> OldTableRow {
        let cells = cells.iter().map(|(name, text)| (*name, OldCellValue::Text((*text).to_owned())));
        OldTableRow::new(table, cells.collect())
    }

    /// The only verdict on a row, which must carry over.
    pub(super) fn carried(verdicts: Vec<MovingVerdict>) -> CarriedRow {
        let mut found = verdicts.into_iter().filter_map(|verdict| match verdict {
            MovingVerdict::Carry(carried) => Some(*carried),
            _ => None,
        });
        let first = found.next().expect("it carries over");
        assert_eq!(found.next(), None);
        first
    }

    #[test]
    fn a_system_is_known_by_its_number() {
        for system in ReferenceSystem::ALL {
            assert_eq!(system.as_str().parse(), Ok(system));
        }
        assert!("005".parse::<ReferenceSystem>().is_err());
    }

    #[test]
    fn a_domain_of_its_own_has_a_host_of_its_own() {
        let by_domain = vec![("A.example".to_owned(), "imap.a.example".to_owned())];
        let hosts = ImapHosts { host: Some("imap.example".to_owned()), by_domain, ..ImapHosts::default() };
        assert_eq!(hosts.host_for("x@a.example"), Some("imap.a.example"));
        assert_eq!(hosts.host_for("x@b.example"), Some("imap.example"));
    }
}
