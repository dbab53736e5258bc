//! Reports about domains: each once, and their sums.
//!
//! They are written in the transaction that settles their mail. Inserting the report recognises a repeat; only
//! a new one is added to the sums. So a mail that is processed again after a crash counts once.

use postway_domain::{
    MessageUid, TenantId, Time,
    domain_report::{DomainReportKind, DomainReportLine, ReportAuthentication, ReportDay},
};

use crate::{
    error::StoreError,
    record::{
        DomainReportDay, DomainReportPlace, DomainReportQuestion, DomainReportSource, DomainReportView,
        NewDomainReport, ReportedDomain,
    },
    sql::{
        Row, SqlSession, SqlText, decode,
        multi_row::{MultiRow, MultiRowSql},
        values,
    },
};

macro_rules! insert {
    ($end:literal) => {
        concat!(
            "INSERT INTO domain_report (tenant, domain, digest, kind, organisation, report_id, sender, authentication, ",
            "began_at, ended_at, policy, total, failed, inbound, received_at) ",
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            $end
        )
    };
}
const INSERT: SqlText = SqlText::or_mysql(insert!(" ON CONFLICT DO NOTHING"), insert!(""));
const LATELY: SqlText = SqlText::same(
    "SELECT COUNT(*) FROM (SELECT 1 FROM domain_report WHERE tenant = ? AND domain = ? AND received_at > ? LIMIT ?) t",
);
const LINES_OF_DAY: SqlText = SqlText::same(
    "SELECT COUNT(*) FROM (SELECT 1 FROM domain_report_line WHERE tenant = ? AND domain = ? AND day = ? LIMIT ?) t",
);
macro_rules! add {
    ($end:literal) => {
        MultiRow::new(
            "INSERT INTO domain_report_line (tenant, domain, day, kind, authentication, source, result, total) VALUES ",
            8,
            $end,
        )
    };
}
macro_rules! add_on_conflict {
    () => {
        add!(
            " ON CONFLICT (tenant, domain, day, kind, authentication, source, result) \
             DO UPDATE SET total = domain_report_line.total + excluded.total"
        )
    };
}
static ADD: MultiRowSql = MultiRowSql {
    sqlite: add_on_conflict!(),
    postgres: add_on_conflict!(),
    mysql: add!(" ON DUPLICATE KEY UPDATE total = total + VALUES(total)"),
};
const DOMAINS: SqlText = SqlText::same(
    "SELECT domain, MAX(received_at) FROM domain_report WHERE tenant = ? GROUP BY domain ORDER BY domain LIMIT ?",
);
const LIST: SqlText = SqlText::same(
    "SELECT digest, kind, organisation, report_id, sender, authentication, began_at, ended_at, policy, total, failed, \
     inbound, received_at FROM domain_report WHERE tenant = ? AND domain = ? \
     AND (received_at < ? OR (received_at = ? AND digest < ?)) ORDER BY received_at DESC, digest DESC LIMIT ?",
);
macro_rules! days {
    ($int:literal) => {
        concat!(
            "SELECT day, authentication, result, CAST(SUM(total) AS ",
            $int,
            ") FROM domain_report_line WHERE tenant = ? AND domain = ? AND kind = ? AND day >= ? ",
            "GROUP BY day, authentication, result ORDER BY day DESC, authentication, result LIMIT ?"
        )
    };
}
const DAYS: SqlText = SqlText::or_mysql(days!("BIGINT"), days!("SIGNED"));
macro_rules! sources {
    ($int:literal) => {
        concat!(
            "SELECT source, result, CAST(SUM(total) AS ",
            $int,
            ") AS summed, MIN(day), MAX(day) FROM domain_report_line ",
            "WHERE tenant = ? AND domain = ? AND kind = ? AND day >= ? ",
            "GROUP BY source, result ORDER BY summed DESC, source, result LIMIT ?"
        )
    };
}
const SOURCES: SqlText = SqlText::or_mysql(sources!("BIGINT"), sources!("SIGNED"));
/// The most rows of each table removed in one transaction; the rest waits for the next run.
const FORGOTTEN_MAX: u32 = 1_000;
const OLD: SqlText = SqlText::same(
    "SELECT tenant, domain, digest FROM domain_report WHERE received_at < ? ORDER BY received_at LIMIT ?",
);
const REMOVE: SqlText =
    SqlText::same("DELETE FROM domain_report WHERE tenant = ? AND domain = ? AND digest = ?");
const OLD_LINES: SqlText = SqlText::same(
    "SELECT tenant, domain, day, kind, authentication, source, result FROM domain_report_line WHERE day < ? \
     ORDER BY day LIMIT ?",
);
const REMOVE_LINE: SqlText = SqlText::same(
    "DELETE FROM domain_report_line WHERE tenant = ? AND domain = ? AND day = ? AND kind = ? AND authentication = ? \
     AND source = ? AND result = ?",
);

#[cfg(test)]
pub(crate) fn statements() -> Vec<SqlText> {
    vec![
        INSERT,
        LATELY,
        LINES_OF_DAY,
        ADD.sample(),
        DOMAINS,
        LIST,
        DAYS,
        SOURCES,
        OLD,
        REMOVE,
        OLD_LINES,
        REMOVE_LINE,
    ]
}

/// Writes those that are new.
pub(crate) async fn write(
    session: &mut dyn SqlSession,
    reports: &[&NewDomainReport],
) -> Result<(), StoreError> {
    // In one order, so that transactions do not wait for each other in a circle.
    let mut reports: Vec<&NewDomainReport> = reports.to_vec();
    reports.sort_by_cached_key(|new| (new.tenant.clone(), new.report.domain.clone(), new.digest()));
    for new in reports {
        write_one(session, new).await?;
    }
    Ok(())
}

async fn write_one(session: &mut dyn SqlSession, new: &NewDomainReport) -> Result<(), StoreError> {
    let NewDomainReport { tenant, report, .. } = new;
    let (of, domain) = (tenant.as_str(), report.domain.as_str());
    let most = NewDomainReport::OF_DOMAIN_PER_DAY_MAX;
    if count(session, LATELY, values![of, domain, a_day_before(new.at), most]).await? >= i64::from(most) {
        return Ok(());
    }
    let values = values![
        of,
        domain,
        &new.digest(),
        report.kind.code(),
        report.organisation.as_str(),
        report.report_id.as_str(),
        new.sender.as_deref(),
        new.authentication.code(),
        report.began_at,
        report.ended_at,
        report.policy.as_deref(),
        report.total(),
        report.failed(),
        new.mail.as_bytes(),
        new.at,
    ];
    if !session.insert(INSERT, values).await? || !new.authentication.counts() {
        return Ok(());
    }
    let day = new.day();
    let most = NewDomainReport::LINES_OF_DAY_MAX;
    let known = count(session, LINES_OF_DAY, values![of, domain, day.0, most]).await?;
    let lines = lines_that_fit(&report.lines, known);
    for (sql, run) in ADD.runs(&lines) {
        let row = |line: &DomainReportLine| {
            let source = line.source.as_str();
            let kind = report.kind.code();
            values![of, domain, day.0, kind, new.authentication.code(), source, line.result, line.count]
        };
        session.execute(sql, run.iter().flat_map(row).collect()).await?;
    }
    Ok(())
}

async fn count(
    session: &mut dyn SqlSession,
    sql: SqlText,
    values: Vec<crate::sql::Value>,
) -> Result<i64, StoreError> {
    let rows = session.rows(sql, values).await?;
    rows.first().map_or(Ok(0), |row| row.int(0))
}

/// The time since which reports are counted for the bound of a domain.
pub(crate) fn a_day_before(at: Time) -> Time {
    Time::from_millis(at.as_millis() - 86_400_000)
}

/// The lines to add to a day that has `known` sums: without their sources if there is no room for them.
pub(crate) fn lines_that_fit(lines: &[DomainReportLine], known: i64) -> Vec<DomainReportLine> {
    if known + (lines.len() as i64) <= i64::from(NewDomainReport::LINES_OF_DAY_MAX) {
        return lines.to_vec();
    }
    let mut summed: Vec<DomainReportLine> = Vec::new();
    for line in lines {
        match summed.iter_mut().find(|sum| sum.result == line.result) {
            Some(sum) => sum.count = sum.count.saturating_add(line.count),
            None => summed.push(DomainReportLine { source: String::new(), ..line.clone() }),
        }
    }
    summed
}

/// The first day and the first time that are kept.
pub(crate) fn kept_since(now: Time) -> (ReportDay, Time) {
    let day = ReportDay::of(now).before(NewDomainReport::KEPT_DAYS);
    (day, day.begin())
}

/// Removes what is too old.
pub(crate) async fn forget(session: &mut dyn SqlSession, now: Time) -> Result<(), StoreError> {
    let (day, since) = kept_since(now);
    for row in session.rows(OLD, values![since, FORGOTTEN_MAX]).await? {
        session.execute(REMOVE, values![row.text(0)?, row.text(1)?, &row.id32(2)?]).await?;
    }
    for row in session.rows(OLD_LINES, values![day.0, FORGOTTEN_MAX]).await? {
        let place = values![
            row.text(0)?,
            row.text(1)?,
            row.int(2)?,
            row.int(3)?,
            row.int(4)?,
            row.text(5)?,
            row.int(6)?
        ];
        session.execute(REMOVE_LINE, place).await?;
    }
    Ok(())
}

pub(crate) async fn domains(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    limit: u32,
) -> Result<Vec<ReportedDomain>, StoreError> {
    let rows = session.rows(DOMAINS, values![tenant.as_str(), limit]).await?;
    let read = |row: &Row| Ok(ReportedDomain { domain: row.text(0)?.to_owned(), received_at: row.time(1)? });
    rows.iter().map(read).collect()
}

pub(crate) async fn list(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    domain: &str,
    before: Option<DomainReportPlace>,
    limit: u32,
) -> Result<Vec<DomainReportView>, StoreError> {
    let (at, digest) = before.unwrap_or((Time::from_millis(i64::MAX), [0xff; 32]));
    let values = values![tenant.as_str(), domain, at, at, &digest, limit];
    session.rows(LIST, values).await?.iter().map(read).collect()
}

fn read(row: &Row) -> Result<DomainReportView, StoreError> {
    Ok(DomainReportView {
        digest: row.id32(0)?,
        kind: decode::coded(row.int(1)?, DomainReportKind::from_code)?,
        organisation: row.text(2)?.to_owned(),
        report_id: row.text(3)?.to_owned(),
        sender: row.opt_string(4)?,
        authentication: decode::coded(row.int(5)?, ReportAuthentication::from_code)?,
        began_at: row.time(6)?,
        ended_at: row.time(7)?,
        policy: row.opt_string(8)?,
        total: row.int(9)?,
        failed: row.int(10)?,
        inbound: MessageUid::from_bytes(row.id16(11)?),
        received_at: row.time(12)?,
    })
}

fn asked(question: &DomainReportQuestion) -> Vec<crate::sql::Value> {
    let DomainReportQuestion { tenant, domain, kind, since, limit } = question;
    values![tenant.as_str(), domain.as_str(), kind.code(), since.0, *limit]
}

pub(crate) async fn days(
    session: &mut dyn SqlSession,
    question: &DomainReportQuestion,
) -> Result<Vec<DomainReportDay>, StoreError> {
    let read = |row: &Row| {
        Ok(DomainReportDay {
            day: ReportDay(row.int(0)?),
            authentication: decode::coded(row.int(1)?, ReportAuthentication::from_code)?,
            result: row.int(2)?,
            total: row.int(3)?,
        })
    };
    session.rows(DAYS, asked(question)).await?.iter().map(read).collect()
}

pub(crate) async fn sources(
    session: &mut dyn SqlSession,
    question: &DomainReportQuestion,
) -> Result<Vec<DomainReportSource>, StoreError> {
    let read = |row: &Row| {
        Ok(DomainReportSource {
            source: row.text(0)?.to_owned(),
            result: row.int(1)?,
            total: row.int(2)?,
            first_day: ReportDay(row.int(3)?),
            last_day: ReportDay(row.int(4)?),
        })
    };
    session.rows(SOURCES, asked(question)).await?.iter().map(read).collect()
}
