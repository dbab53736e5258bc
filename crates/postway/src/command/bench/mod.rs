//! `postway bench`: drives the real path, HTTP in and SMTP out, and prints what was measured.
//!
//! On its own it starts a server of this binary in a fresh folder and a sink, so that one command on one
//! machine gives figures to compare; with `--url` it measures a running server. `--nodes`, `--limits` and
//! `--webhook` compare two ways of doing the same in one run, in turns; `--fairness` measures one tenant
//! beside another's backlog, `--subscribers` living webhooks beside dead ones, `--smtp` acceptance over SMTP
//! beside HTTP, `--doors` acceptance by the compatibility APIs beside our own routes, `--page` the calls of
//! the page with a million messages stored; `--kills` kills its servers under load and compares the records.
//! It counts loss and duplicates beside the rates, because a rate without them says nothing. It is bounded in
//! messages and in time, and leaves nothing running; on a server given with `--url`, its accounts and
//! messages (`bench-…`) stay, and so does what it wrote to `--database`. It fails (exit code 1) if a message
//! or a notification is lost, a message sent twice without doubt, or something not done in time.

mod acceptance;
mod args;
mod audit;
mod compare;
mod compat_apis;
mod connection;
mod fairness;
mod kills;
mod load;
mod measure;
mod outbox;
mod page;
mod receiver;
mod report;
mod server;
mod sink;
mod smtp;
mod smtp_sink;
mod subscribers;
mod trial;
mod webhook;

use std::time::Duration;

use anyhow::Context as _;
use indicatif::{ProgressBar, ProgressStyle};
use reqwest::Method;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::Instant;

pub use self::sink::BuiltinSink;
use super::CommandContext;
use crate::cli::client::{ApiClient, RequestBody};
use crate::cli::failure::CommandFailure;
use crate::cli::output::CommandOutput;
pub use args::BenchArgs;
use server::{BenchServer, ServerRecipe};
use trial::BenchTrial;

pub async fn run(context: &CommandContext, args: BenchArgs) -> Result<(), CommandFailure> {
    args.check(context.names_a_server())?;
    let deadline = Instant::now() + Duration::from_secs(args.timeout_seconds);
    let recipe = ServerRecipe::new(&args);
    if let Some(kills) = args.kills {
        let found = kills::run(&args, kills, recipe, deadline).await?;
        return show(context, &found, |output| found.render(output), found.problem());
    }
    if args.fairness {
        let found = fairness::run(&args, recipe, deadline).await?;
        return show(context, &found, |output| found.render(output), found.problem());
    }
    if let Some(url) = &args.outbox {
        let found = outbox::run(&args, url, recipe, deadline).await?;
        return show(context, &found, |output| found.render(output), found.problem());
    }
    if let Some(messages) = args.page {
        let found = page::run(&args, messages, recipe, deadline).await?;
        return show(context, &found, |output| found.render(output), found.problem());
    }
    if args.smtp {
        let found = smtp::run(&args, recipe, deadline).await?;
        return show(context, &found, |output| found.render(output), found.problem());
    }
    if args.doors {
        let found = compat_apis::run(&args, recipe, deadline).await?;
        return show(context, &found, |output| found.render(output), found.problem());
    }
    if args.webhook {
        let found = webhook::run(&args, recipe, deadline).await?;
        return show(context, &found, |output| found.render(output), found.problem());
    }
    if args.subscribers > 0 {
        let found = subscribers::run(&args, recipe, deadline).await?;
        return show(context, &found, |output| found.render(output), found.problem());
    }
    if args.limits || args.nodes > 1 {
        let found = match args.limits {
            true => compare::limits(&args, &recipe, deadline).await?,
            false => compare::nodes(&args, &recipe, deadline).await?,
        };
        return show(context, &found, |output| found.render(output), found.problem());
    }
    let nodes = match context.names_a_server() {
        true => vec![BenchServer::running(context.client()?, args.pid)],
        false => recipe.start(1).await?,
    };
    let report = BenchTrial { args: &args, nodes: &nodes, deadline }.run().await;
    let stopped = server::stop(nodes).await;
    let mut report = report?;
    report.warnings.extend(stopped?);
    show(context, &report, |output| report.render(output), report.problem())
}

/// Prints the result, then fails if `problem` says why.
fn show(
    context: &CommandContext,
    found: &impl Serialize,
    render: impl FnOnce(CommandOutput) -> String,
    problem: Option<String>,
) -> Result<(), CommandFailure> {
    let json = serde_json::to_value(found).context("cannot write the report as JSON")?;
    context.output.show(&json, |output, _| render(output))?;
    match problem {
        Some(problem) => Err(anyhow::anyhow!(problem).into()),
        None => Ok(()),
    }
}

/// A name that no earlier run had.
fn run_name() -> String {
    format!("bench-{:08x}", rand::random::<u32>())
}

/// Creates an SMTP account; `more` has its settings beyond host, port and connections.
async fn create_account(
    client: &ApiClient,
    id: &str,
    (host, port): (&str, u16),
    connections: u32,
    more: Value,
) -> Result<String, CommandFailure> {
    let mut account = json!({
        "id": id, "kind": "smtp", "host": host, "port": port, "tls": "none", "max_connections": connections,
    });
    if let (Some(account), Value::Object(more)) = (account.as_object_mut(), more) {
        account.extend(more);
    }
    let created = client.call(Method::POST, &["v1", "accounts"], &[], RequestBody::Json(&account)).await?;
    Ok(created.get("id").and_then(Value::as_str).unwrap_or(id).to_owned())
}

/// Creates a tenant, and returns a client for it.
async fn create_tenant(
    recipe: &ServerRecipe,
    node: &BenchServer,
    id: &str,
) -> Result<ApiClient, CommandFailure> {
    let tenant = json!({"id": id, "name": id});
    node.client.call(Method::POST, &["v1", "tenants"], &[], RequestBody::Json(&tenant)).await?;
    recipe.client(node.client.base().as_str(), Some(id.to_owned()))
}

/// A bar on standard error, drawn on a terminal only.
fn progress(length: u64, name: &'static str) -> ProgressBar {
    let bar = ProgressBar::new(length).with_prefix(name);
    match ProgressStyle::with_template("{prefix:>7} {bar:40} {human_pos}/{human_len} {per_sec} {elapsed}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
