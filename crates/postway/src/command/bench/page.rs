//! How long the calls of the page take with many messages stored.
//!
//! A server of this binary is filled through the API: half of the messages wait in a suspended batch, a few
//! are planned or suppressed, the rest goes to the sandbox. Then each call is made again and again, one at a
//! time, and timed from the request to the last byte of its answer. Among them are those with nothing to
//! find, which have to look the furthest. Fails if the median of a call is above the aim.

use std::time::Duration;

use anyhow::Context as _;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use jiff::{SignedDuration, Timestamp};
use reqwest::Method;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::args::BenchArgs;
use super::measure::percentile;
use super::server::{self, BenchServer, ServerRecipe};
use super::{create_tenant, progress};
use crate::cli::client::{ApiClient, RequestBody};
use crate::cli::failure::CommandFailure;
use crate::cli::output::CommandOutput;

/// The time that a call of the page may take.
const AIM_MS: f64 = 100.0;
/// How often each call is made.
const CALLS: usize = 20;
const PER_REQUEST: u32 = 1_000;
const REQUESTS_TOGETHER: usize = 4;
/// Enough connections that the messages are sent within minutes.
const CONNECTIONS: u32 = 400;
const POLL: Duration = Duration::from_secs(1);
/// Far enough that nothing planned becomes due.
const AHEAD_HOURS: i64 = 7 * 24;

/// The result of the measurement.
#[derive(Debug, Serialize)]
pub struct PageBench {
    messages: u32,
    by_status: Value,
    calls: Vec<PageCall>,
    warnings: Vec<String>,
}

/// One call, made many times.
#[derive(Debug, Serialize)]
struct PageCall {
    path: String,
    first_ms: f64,
    p50_ms: f64,
    max_ms: f64,
    bytes: usize,
}

/// Measures on a server of its own.
pub async fn run(
    args: &BenchArgs,
    messages: u32,
    recipe: ServerRecipe,
    deadline: Instant,
) -> Result<PageBench, CommandFailure> {
    let nodes = recipe.start(1).await?;
    let found = measure(args, messages, &recipe, &nodes[0], deadline).await;
    let stopped = server::stop(nodes).await;
    let mut found = found?;
    found.warnings.extend(stopped?);
    Ok(found)
}

async fn measure(
    args: &BenchArgs,
    messages: u32,
    recipe: &ServerRecipe,
    node: &BenchServer,
    deadline: Instant,
) -> Result<PageBench, CommandFailure> {
    let client = &node.client;
    // The messages of this tenant lie between ours and must cost us nothing.
    let other = create_tenant(recipe, node, "other").await?;
    for tenant in [client, &other] {
        let body = json!({"max_connections": CONNECTIONS});
        let path = ["v1", "accounts", "sandbox"];
        tenant.call(Method::PATCH, &path, &[], RequestBody::Json(&body)).await?;
        let rare = json!({"id": "rare", "kind": "sandbox"});
        tenant.call(Method::POST, &["v1", "accounts"], &[], RequestBody::Json(&rare)).await?;
        tenant.call(Method::POST, &["v1", "batches", "held", "suspend"], &[], RequestBody::Empty).await?;
        let gone = json!({"address": "gone@example.net"});
        tenant.call(Method::POST, &["v1", "suppressions"], &[], RequestBody::Json(&gone)).await?;
    }
    let made = client.get(&["v1", "tenants", "other"], &[]).await?;
    let made_at: Timestamp =
        made["created_at"].as_str().unwrap_or_default().parse().context("no time of the server")?;
    let send_at = (made_at + SignedDuration::from_hours(AHEAD_HOURS)).to_string();
    let bar = progress(u64::from(messages), "accept");
    let requests = (0..messages).step_by(PER_REQUEST as usize).map(|first| {
        let numbers = first..(first + PER_REQUEST).min(messages);
        let tenant = if is_others(first) { &other } else { client };
        let (bar, size, send_at) = (&bar, args.size, send_at.as_str());
        async move {
            let mails: Vec<Value> =
                numbers.clone().map(|number| mail(number, messages, size, send_at)).collect();
            let body = json!({"messages": mails});
            tenant.call(Method::POST, &["v1", "messages", "batch"], &[], RequestBody::Json(&body)).await?;
            bar.inc(numbers.len() as u64);
            Ok::<_, CommandFailure>(())
        }
    });
    stream::iter(requests).buffer_unordered(REQUESTS_TOGETHER).try_collect::<()>().await?;
    bar.finish_and_clear();
    let ours = (0..messages).filter(|number| !is_others(*number));
    let wanted = ours.filter(|number| is_sent(&mail(*number, messages, 0, &send_at))).count() as u64;
    let (by_status, all_out) = wait_until_sent(client, wanted, deadline).await?;
    let mut calls = Vec::new();
    for path in paths(client).await? {
        calls.push(time(client, path).await?);
    }
    let late = "not all that was to be sent had been sent when the time was over".to_owned();
    let warnings = if all_out { Vec::new() } else { vec![late] };
    Ok(PageBench { messages, by_status, calls, warnings })
}

/// The n-th mail. What is rare comes first, so that everything else lies above it.
fn mail(number: u32, messages: u32, size: u32, send_at: &str) -> Value {
    let mut mail = json!({
        "id": format!("m-{number}"), "account": "sandbox", "from": "Shop <shop@example.com>",
        "to": [format!("user{}@example.net", number % 5_000)], "subject": format!("Order {number}"),
        "text": "x".repeat(size as usize),
    });
    let common = number >= messages / 1_000;
    if !common {
        mail["account"] = json!("rare");
        mail["tags"] = json!(["rare"]);
    } else if number.is_multiple_of(2) {
        mail["batch"] = json!("held");
    } else if number.is_multiple_of(5) {
        mail["batch"] = json!(format!("campaign-{}", number % 400));
    }
    match number % 20 {
        3 if common => mail["tags"] = json!(["third"]),
        7 if common => mail["send_at"] = json!(send_at),
        9 => mail["to"] = json!(["everyone@example.org", "user1@example.net"]),
        11 if number < messages / 50 => mail["to"] = json!(["gone@example.net"]),
        _ => {}
    }
    mail
}

/// Whether a mail leaves by itself.
fn is_sent(mail: &Value) -> bool {
    mail["batch"] != "held" && mail["send_at"].is_null() && mail["to"][0] != "gone@example.net"
}

/// Whether the n-th mail is the other tenant's: a tenth is, a request at a time.
fn is_others(number: u32) -> bool {
    number / PER_REQUEST % 10 == 9
}

/// Waits until `count` messages have been sent, or until the deadline; returns the counts, and whether it was
/// in time.
async fn wait_until_sent(
    client: &ApiClient,
    wanted: u64,
    deadline: Instant,
) -> Result<(Value, bool), CommandFailure> {
    let bar = progress(wanted, "send");
    loop {
        let by_status = client.get(&["v1", "stats"], &[]).await?["by_status"].clone();
        let sent = by_status["captured"].as_u64().unwrap_or(0);
        bar.set_position(sent);
        if sent >= wanted || Instant::now() >= deadline {
            bar.finish_and_clear();
            return Ok((by_status, sent >= wanted));
        }
        tokio::time::sleep(POLL).await;
    }
}

/// What the page asks for: its overview, lists by each filter and by several, deep pages, single messages,
/// and the rest.
async fn paths(client: &ApiClient) -> Result<Vec<String>, CommandFailure> {
    let oldest =
        client.get(&["v1", "messages"], &[("account", "rare".to_owned()), ("limit", "1".to_owned())]).await?;
    let oldest = oldest["data"][0].clone();
    let next =
        client.get(&["v1", "messages"], &[("account", "rare".to_owned()), ("limit", "1".to_owned())]).await?;
    let cursor = next["next_cursor"].as_str().unwrap_or_default().to_owned();
    let (uid, at) =
        (oldest["uid"].as_str().unwrap_or_default(), oldest["created_at"].as_str().unwrap_or_default());
    let lists = [
        String::new(),
        "?limit=500".to_owned(),
        format!("?cursor={cursor}"),
        "?status=sent".to_owned(),
        "?status=ready".to_owned(),
        "?status=scheduled".to_owned(),
        "?status=suppressed".to_owned(),
        "?status=failed".to_owned(),
        format!("?status=sent&cursor={cursor}"),
        "?account=sandbox".to_owned(),
        "?account=rare".to_owned(),
        "?account=rare&status=ready".to_owned(),
        "?batch=held".to_owned(),
        "?batch=campaign-5".to_owned(),
        "?batch=none".to_owned(),
        "?batch=held&status=sent".to_owned(),
        "?recipient=everyone@example.org".to_owned(),
        "?recipient=user7@example.net".to_owned(),
        "?recipient=everyone@example.org&status=suppressed".to_owned(),
        "?tag=third".to_owned(),
        "?tag=rare".to_owned(),
        "?tag=third&account=rare".to_owned(),
        "?subject=order".to_owned(),
        "?subject=nothing".to_owned(),
        "?subject=nothing&tag=third".to_owned(),
        "?error_code=smtp_550".to_owned(),
        format!("?until={at}"),
        format!("?since={at}"),
        format!("?until={at}&status=sent"),
    ];
    let rest = [
        "v1/overview",
        "v1/stats",
        "v1/statistics?by=hour",
        "v1/dead-letters",
        "v1/batches",
        "v1/batches?limit=500",
        "v1/batches/held",
        "v1/accounts",
        "v1/webhooks",
        "v1/suppressions",
        "v1/inbound",
        "v1/audit",
        "v1/nodes",
        "v1/tenants",
    ];
    let one = ["", "/explain", "/content"].map(|part| format!("v1/messages/{uid}{part}"));
    let lists = lists.into_iter().map(|query| format!("v1/messages{query}"));
    Ok(rest.map(str::to_owned).into_iter().chain(lists).chain(one).collect())
}

async fn time(client: &ApiClient, path: String) -> Result<PageCall, CommandFailure> {
    let (place, query) = path.split_once('?').unwrap_or((&path, ""));
    let place: Vec<&str> = place.split('/').collect();
    let query: Vec<(&str, String)> = query
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| (name, value.to_owned()))
        .collect();
    let (mut micros, mut bytes) = (Vec::with_capacity(CALLS), 0);
    for _ in 0..CALLS {
        let started = Instant::now();
        bytes = client.call_for_bytes(Method::GET, &place, &query, RequestBody::Empty).await?.len();
        micros.push(started.elapsed().as_micros() as u64);
    }
    let first_ms = micros.first().map_or(0.0, |first| *first as f64 / 1e3);
    let mut at = |share| percentile(&mut micros, share) / 1e3;
    Ok(PageCall { first_ms, p50_ms: at(0.5), max_ms: at(1.0), bytes, path })
}

impl PageBench {
    /// Why the run is a failure, if it is one.
    pub fn problem(&self) -> Option<String> {
        let slow: Vec<&str> =
            self.calls.iter().filter(|call| call.p50_ms > AIM_MS).map(|call| call.path.as_str()).collect();
        (!slow.is_empty()).then(|| format!("slower than {AIM_MS} ms: {}", slow.join(", ")))
    }

    /// The table for people.
    pub fn render(&self, output: CommandOutput) -> String {
        let rows = self.calls.iter().map(|call| {
            let ms = |value: f64| format!("{value:.1}");
            vec![
                format!("/{}", call.path),
                ms(call.first_ms),
                ms(call.p50_ms),
                ms(call.max_ms),
                call.bytes.to_string(),
            ]
        });
        let table = output.table(&["call", "first (ms)", "p50 (ms)", "max (ms)", "bytes"], rows);
        let warnings: String = self.warnings.iter().map(|warning| format!("\nwarning: {warning}")).collect();
        format!("{} messages: {}\n{table}{warnings}", self.messages, self.by_status)
    }
}
