//! `postway doctor`: everything that delivery depends on, checked, with advice.
//!
//! Without a subcommand it checks everything, also without a running server. `domain` and `mailboxes` check
//! one thing in detail.

use std::net::SocketAddr;

use clap::{Args, Subcommand};
use postway_domain::Clock as _;
use reqwest::Method;
use serde_json::{Value, json};

use super::CommandContext;
use crate::cli::client::RequestBody;
use crate::cli::failure::CommandFailure;
use crate::cli::output::{field, list};
use crate::cli::progress::steps;
use crate::cluster::clock::NodeClock;
use crate::doctor::{
    AREAS, CheckupState, CheckupSubject, DoctorCheckup, DoctorReport, DomainOptions, ExpectedDkimKey,
    SystemDns, check_domain, examine, judge_mailbox,
};

#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub struct DoctorArgs {
    /// Ask this name server instead of the system's, as in 192.0.2.1:53
    #[arg(long, value_name = "ADDRESS:PORT")]
    dns: Option<SocketAddr>,
    #[command(subcommand)]
    command: Option<DoctorCommand>,
}

#[derive(Debug, Subcommand)]
pub enum DoctorCommand {
    /// Check SPF, DKIM, DMARC and MX of a domain (exit code 1 unless all is sound)
    Domain(DoctorDomainArgs),
    /// Check that watched mailboxes can be reached, are read, and are not behind (exit code 1 unless all are)
    Mailboxes,
}

#[derive(Args, Debug)]
pub struct DoctorDomainArgs {
    /// The domain in your From addresses
    domain: String,
    /// What lets your relay send for it in SPF, such as include:amazonses.com (may be repeated)
    #[arg(long, value_name = "MECHANISM")]
    spf: Vec<String>,
    /// Where DMARC reports should go
    #[arg(long, value_name = "ADDRESS")]
    reports_to: Option<String>,
    /// Ask this name server instead of the system's, as in 192.0.2.1:53
    #[arg(long, value_name = "ADDRESS:PORT")]
    dns: Option<SocketAddr>,
}

pub async fn run(context: &CommandContext, args: DoctorArgs) -> Result<(), CommandFailure> {
    match args.command {
        None => everything(context, args.dns).await,
        Some(DoctorCommand::Domain(args)) => domain(context, args).await,
        Some(DoctorCommand::Mailboxes) => mailboxes(context).await,
    }
}

async fn everything(context: &CommandContext, dns: Option<SocketAddr>) -> Result<(), CommandFailure> {
    let client = context.client();
    let elsewhere = context.names_a_server() && client.as_ref().is_ok_and(|client| !client.is_local());
    let subject = CheckupSubject {
        loaded: (!elsewhere).then(|| context.load_or_errors()),
        config_file: context.config_file(),
        client,
        tenant: context.tenant(),
        dns: dns.or_else(|| configured_dns(context)),
    };
    let bar = steps(AREAS, "checked");
    bar.tick();
    let checkup = examine(&subject, &|area| {
        bar.set_message(area.area);
        bar.inc(1);
    })
    .await;
    bar.finish_and_clear();
    let problems = checkup.count(CheckupState::Problem);
    match context.output.is_json() {
        true => context.output.json(&as_json(&checkup)?)?,
        false => context.output.text(&checkup.text(context.output.colours()))?,
    }
    match problems {
        0 => Ok(()),
        1 => Err(anyhow::anyhow!("1 problem needs attention").into()),
        problems => Err(anyhow::anyhow!("{problems} problems need attention").into()),
    }
}

fn as_json(checkup: &DoctorCheckup) -> Result<Value, CommandFailure> {
    let mut value = serde_json::to_value(checkup).map_err(anyhow::Error::new)?;
    value["sound"] = json!(checkup.count(CheckupState::Problem) == 0);
    Ok(value)
}

/// Checks every mailbox by its state in the server and by connecting to it.
async fn mailboxes(context: &CommandContext) -> Result<(), CommandFailure> {
    let client = context.client()?;
    let all = client.get(&["v1", "mailboxes"], &[]).await?;
    let now = NodeClock::default().now();
    let mut findings = Vec::new();
    for mailbox in list(&all, "data") {
        let id = field(mailbox, "id");
        let trial = match mailbox["active"] == true {
            true => {
                let path = ["v1", "mailboxes", &id, "test"];
                Some(client.call(Method::POST, &path, &[], RequestBody::Empty).await?)
            }
            false => None,
        };
        findings.push(judge_mailbox(mailbox, trial.as_ref(), now));
    }
    if findings.is_empty() && !context.output.is_json() {
        eprintln!("no mailboxes are watched");
    }
    let report = DoctorReport { domain: "mailboxes".to_owned(), findings };
    match context.output.is_json() {
        true => context.output.json(&json!({"findings": report.findings}))?,
        false => context.output.text(&report.to_string())?,
    }
    match report.is_sound() {
        true => Ok(()),
        false => Err(anyhow::anyhow!("a mailbox needs attention").into()),
    }
}

/// The name server that the configuration names; a configuration with errors names none.
fn configured_dns(context: &CommandContext) -> Option<SocketAddr> {
    context.load_or_errors().ok()?.config.dns_server
}

async fn domain(context: &CommandContext, args: DoctorDomainArgs) -> Result<(), CommandFailure> {
    let dns = match args.dns.or_else(|| configured_dns(context)) {
        Some(server) => SystemDns::with_server(server),
        None => SystemDns::from_system(),
    };
    let dns = dns.map_err(anyhow::Error::new)?;
    let keys = keys(context, &args.domain).await?;
    let options = DomainOptions { spf: args.spf, keys, reports_to: args.reports_to };
    let report = check_domain(&args.domain, &options, &dns).await;
    match context.output.is_json() {
        true => context.output.json(&serde_json::to_value(&report).map_err(anyhow::Error::new)?)?,
        false => context.output.text(&report.to_string())?,
    }
    match report.is_sound() {
        true => Ok(()),
        false => Err(anyhow::anyhow!("{} needs attention", report.domain).into()),
    }
}

/// The keys that sign for the domain, as the server knows them. DNS can be checked without a server, so an
/// unreachable server is not a failure.
async fn keys(context: &CommandContext, domain: &str) -> Result<Vec<ExpectedDkimKey>, CommandFailure> {
    let query = [("domain", domain.to_owned())];
    match context.client()?.get(&["v1", "dkim"], &query).await {
        Ok(keys) => Ok(expected(&keys)),
        Err(CommandFailure::Unreachable { url, .. }) => {
            eprintln!("no server at {url}: its DKIM keys are not known and not checked");
            Ok(Vec::new())
        }
        Err(failure) => Err(failure),
    }
}

/// The keys that sign: a suspended key need not be published.
fn expected(keys: &Value) -> Vec<ExpectedDkimKey> {
    let signing = list(keys, "data").iter().filter(|key| key.get("active") == Some(&Value::Bool(true)));
    signing
        .map(|key| ExpectedDkimKey { selector: field(key, "selector"), record: field(key, "dns_record") })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_keys_that_sign_are_expected_in_dns() {
        let keys = json!({"data": [
            {"selector": "a", "dns_record": "v=DKIM1; p=x", "active": true},
            {"selector": "b", "dns_record": "v=DKIM1; p=y", "active": false},
        ]});
        let record = "v=DKIM1; p=x".to_owned();
        assert_eq!(expected(&keys), [ExpectedDkimKey { selector: "a".to_owned(), record }]);
    }
}
