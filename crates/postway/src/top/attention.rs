//! What needs attention: accounts, failures, mailboxes, webhooks, nodes, tenants. Pure.
//!
//! A section without lines is not shown, so that a quiet gateway has a quiet screen.

use serde_json::Value;

use super::board::{LineTone, time};
use super::source::ServerSnapshot;
use crate::cli::amount::{count, span};
use crate::cli::output::{field, list, printable};

/// The used part of a limit, in percent, from which it is shown.
const LIMIT_NEAR: u64 = 90;

/// Lines under a title.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttentionSection {
    /// What they are about.
    pub title: &'static str,
    /// The lines, the most important first.
    pub lines: Vec<(String, LineTone)>,
}

/// All sections that have something to say, what stops mail first.
pub fn sections(news: &ServerSnapshot) -> Vec<AttentionSection> {
    let overview = &news.overview;
    let sections = [
        ("accounts", accounts(news)),
        ("nodes", nodes(overview)),
        ("mailboxes behind", mailboxes(overview)),
        ("subscribers behind", subscribers(overview)),
        ("failures of the last day", failures(overview)),
        ("tenants with the most waiting", tenants(news)),
    ];
    let sections = sections.into_iter().map(|(title, lines)| {
        let lines = lines.into_iter().map(|(text, tone)| (printable(&text).replace('\n', " "), tone));
        AttentionSection { title, lines: lines.collect() }
    });
    sections.filter(|section| !section.lines.is_empty()).collect()
}

/// Open circuits first, then what is suspended, then limits.
fn accounts(news: &ServerSnapshot) -> Vec<(String, LineTone)> {
    let now = time(&news.overview, "at");
    let open = list(&news.overview, "circuits").iter().map(|circuit| {
        let until = time(circuit, "open_until").zip(now);
        let left = until.map_or(0, |(until, now)| (until.as_millis() - now.as_millis()).max(0) / 1_000);
        let tried = span(left.unsigned_abs());
        let text = format!(
            "{}  open, tried again in {tried}: {}",
            field(circuit, "account"),
            field(circuit, "reason")
        );
        (text, LineTone::Bad)
    });
    let suspended = news.accounts.iter().filter(|account| account["suspended"] == true);
    let suspended =
        suspended.map(|account| (format!("{}  suspended", field(account, "id")), LineTone::Warning));
    open.chain(suspended).chain(news.accounts.iter().filter_map(limits)).collect()
}

/// How much of its limits an account has used.
fn limits(account: &Value) -> Option<(String, LineTone)> {
    let spans = [("minute", "per_minute"), ("hour", "per_hour"), ("day", "per_day")];
    let mut near = false;
    let mut parts = Vec::new();
    for (name, limit) in spans {
        // A warm-up's limit is not among the account's own.
        let Some(used) = account["used"][name].as_u64() else { continue };
        let most = account["limits"][limit].as_u64().filter(|most| *most > 0);
        near |= most.is_some_and(|most| used * 100 >= most * LIMIT_NEAR);
        let used = count(i64::try_from(used).unwrap_or(i64::MAX));
        let most = most.map(|most| format!(" of {}", count(i64::try_from(most).unwrap_or(i64::MAX))));
        parts.push(format!("{used}{} a {name}", most.unwrap_or_default()));
    }
    let tone = if near { LineTone::Warning } else { LineTone::Plain };
    (!parts.is_empty()).then(|| (format!("{}  {}", field(account, "id"), parts.join(", ")), tone))
}

fn nodes(overview: &Value) -> Vec<(String, LineTone)> {
    let nodes = list(overview, "nodes");
    if nodes.len() < 2 {
        return Vec::new();
    }
    let line = |node: &Value| {
        let tone = if node["status"] == "alive" { LineTone::Plain } else { LineTone::Bad };
        let words = ["name", "address", "version", "status"].map(|name| field(node, name));
        (words.join("  "), tone)
    };
    let (mut lines, alive): (Vec<_>, Vec<_>) =
        nodes.iter().map(line).partition(|(_, tone)| *tone == LineTone::Bad);
    lines.extend(alive);
    lines
}

fn mailboxes(overview: &Value) -> Vec<(String, LineTone)> {
    let line = |mailbox: &Value| {
        let lag = mailbox["lag"].as_i64().map_or(String::new(), |lag| format!("  {} behind", count(lag)));
        let error = field(mailbox, "error");
        let tone = if error.is_empty() { LineTone::Warning } else { LineTone::Bad };
        (format!("{}{lag}  {error}", field(mailbox, "mailbox")).trim_end().to_owned(), tone)
    };
    list(overview, "mailboxes").iter().map(line).collect()
}

fn subscribers(overview: &Value) -> Vec<(String, LineTone)> {
    let line = |subscriber: &Value| {
        let url = Some(field(subscriber, "url")).filter(|url| !url.is_empty());
        let name = url.unwrap_or_else(|| field(subscriber, "id"));
        match field(subscriber, "disabled_reason") {
            reason if reason.is_empty() => (format!("{name}  calls are due"), LineTone::Warning),
            reason => (format!("{name}  switched off: {reason}"), LineTone::Bad),
        }
    };
    list(overview, "subscribers").iter().map(line).collect()
}

fn failures(overview: &Value) -> Vec<(String, LineTone)> {
    let line = |reason: &Value| {
        let number = reason["count"].as_i64().unwrap_or(0);
        (format!("{:>7}  {}", count(number), field(reason, "code")), LineTone::Plain)
    };
    list(overview, "failures").iter().map(line).collect()
}

fn tenants(news: &ServerSnapshot) -> Vec<(String, LineTone)> {
    let line = |backlog: &Value| {
        let waiting = count(backlog["waiting"].as_i64().unwrap_or(0));
        let oldest = backlog["oldest_due_seconds"].as_u64().unwrap_or(0);
        (format!("{waiting:>7}  {}, oldest due {}", field(backlog, "tenant"), span(oldest)), LineTone::Plain)
    };
    news.tenants.iter().map(line).collect()
}
