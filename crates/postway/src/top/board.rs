//! The content of the screen, made from the server's answers. Pure.
//!
//! Texts of strangers (a relay's reply, a webhook's address) lose their control characters here, before any
//! of them reaches a terminal.

use postway_domain::Time;
use serde_json::Value;

use super::attention::{self, AttentionSection};
use super::source::ServerSnapshot;
use crate::cli::amount::{count, rate, span, wait};
use crate::cli::output::{field, list, printable};

/// The server that is watched.
#[derive(Clone, Debug)]
pub struct WatchedServer {
    /// The server's address.
    pub server: String,
    /// The tenant, if one was named.
    pub tenant: Option<String>,
}

/// How much a line matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineTone {
    /// Nothing special.
    Plain,
    /// Of little interest.
    Quiet,
    /// It went well.
    Good,
    /// It needs attention.
    Warning,
    /// Something is wrong.
    Bad,
}

/// The content of the screen.
#[derive(Clone, Debug)]
pub struct StatusBoard {
    /// The server, its version, how long it has been up, and its nodes.
    pub title: String,
    /// Whose mail, and when.
    pub corner: String,
    /// Names and values, the most important first.
    pub figures: Vec<(&'static str, String, LineTone)>,
    /// Messages by state, in the order of their life.
    pub queue: Vec<(String, i64, LineTone)>,
    /// Accepted and sent in each minute of the last hour, the oldest first.
    pub accepted: Vec<u64>,
    /// Sent in each minute of the last hour.
    pub sent: Vec<u64>,
    /// What needs attention, by section.
    pub sections: Vec<AttentionSection>,
}

impl StatusBoard {
    /// Makes the board of a server from its latest answers.
    pub fn new(station: &WatchedServer, news: &ServerSnapshot) -> Self {
        let overview = &news.overview;
        let minute = |name: &str| {
            list(overview, "last_hour").iter().map(|minute| minute[name].as_u64().unwrap_or(0)).collect()
        };
        Self {
            title: title(station, overview),
            corner: corner(station, overview),
            figures: figures(overview),
            queue: queue(overview),
            accepted: minute("accepted"),
            sent: minute("sent"),
            sections: attention::sections(news),
        }
    }
}

fn title(station: &WatchedServer, overview: &Value) -> String {
    let nodes = list(overview, "nodes");
    let mut title = format!("postway  {}", station.server.trim_end_matches('/'));
    if let Some(me) = nodes.iter().find(|node| node["is_self"] == true) {
        title = format!("postway {}  {}", field(me, "version"), station.server.trim_end_matches('/'));
        if let (Some(at), Some(started)) = (time(overview, "at"), time(me, "started_at")) {
            let up = u64::try_from(at.as_millis() - started.as_millis()).unwrap_or(0) / 1_000;
            title.push_str(&format!("  up {}", span(up)));
        }
        let alive = nodes.iter().filter(|node| node["status"] == "alive").count();
        title.push_str(&match nodes.len() {
            1 => "  1 node".to_owned(),
            all if all == alive => format!("  {all} nodes"),
            all => format!("  {alive} of {all} nodes alive"),
        });
    }
    printable(&title)
}

fn corner(station: &WatchedServer, overview: &Value) -> String {
    let at = field(overview, "at");
    let clock = at.get(11..19).map(|clock| format!("{clock} UTC")).unwrap_or_default();
    let is_admin = !list(overview, "nodes").is_empty();
    match (&station.tenant, is_admin) {
        (Some(tenant), _) => format!("tenant {}  {clock}", printable(tenant)),
        (None, true) => format!("tenant default  {clock}"),
        (None, false) => clock,
    }
}

/// The age of the oldest due message from which it needs attention, and from which it is wrong.
const DUE_S: (u64, u64) = (60, 600);

fn figures(overview: &Value) -> Vec<(&'static str, String, LineTone)> {
    let per_second = |name: &str| overview["rates"][name].as_f64().unwrap_or(0.0);
    let millis = |name: &str| overview["time_in_queue"][name].as_i64().map_or("–".to_owned(), wait);
    let oldest = overview["oldest_due_seconds"].as_u64().unwrap_or(0);
    let held = overview["held"].as_i64().unwrap_or(0);
    let when = |holds: bool, tone: LineTone| if holds { tone } else { LineTone::Plain };
    let late = if oldest >= DUE_S.1 { LineTone::Bad } else { when(oldest >= DUE_S.0, LineTone::Warning) };
    vec![
        ("in", rate(per_second("accepted")), LineTone::Plain),
        ("oldest due", span(oldest), late),
        ("in queue p50", millis("p50_ms"), LineTone::Plain),
        ("out", rate(per_second("sent")), LineTone::Plain),
        ("held", count(held), when(held > 0, LineTone::Warning)),
        ("in queue p95", millis("p95_ms"), LineTone::Plain),
        ("failed", rate(per_second("failed")), when(per_second("failed") > 0.0, LineTone::Warning)),
        ("in flight", count(overview["by_status"]["sending"].as_i64().unwrap_or(0)), LineTone::Plain),
        (
            "sample",
            format!("{} mails", count(overview["time_in_queue"]["sample"].as_i64().unwrap_or(0))),
            LineTone::Quiet,
        ),
    ]
}

fn queue(overview: &Value) -> Vec<(String, i64, LineTone)> {
    let states = overview["by_status"].as_object().into_iter().flatten();
    let rows = states.map(|(state, messages)| {
        let messages = messages.as_i64().unwrap_or(0);
        let tone = match state.as_str() {
            _ if messages == 0 => LineTone::Quiet,
            "sent" => LineTone::Good,
            "failed" | "invalid" => LineTone::Bad,
            "in_doubt" => LineTone::Warning,
            _ => LineTone::Plain,
        };
        (state.clone(), messages, tone)
    });
    rows.collect()
}

/// A time of the server's JSON.
pub fn time(value: &Value, name: &str) -> Option<Time> {
    value.get(name)?.as_str()?.parse().ok()
}
