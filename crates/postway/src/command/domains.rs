//! `postway domains`: the domains that mail is sent from, what DNS says about them, and what other servers
//! report.

use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::Value;

use super::CommandContext;
use crate::cli::client::RequestBody;
use crate::cli::failure::CommandFailure;
use crate::cli::output::{CommandOutput, field, list};
use crate::cli::pages::{self, PageArgs, row};

const COLUMNS: [&str; 6] = ["domain", "state", "signs", "right_since", "checked_at", "reported_at"];
const REPORT_COLUMNS: [&str; 7] =
    ["received_at", "kind", "organisation", "authentication", "began_at", "total", "failed"];
const SOURCE_COLUMNS: [&str; 8] =
    ["address", "is_known", "total", "passed", "dkim_passed", "spf_passed", "held_back", "last_day"];
const FAILURE_COLUMNS: [&str; 5] = ["type", "server", "total", "first_day", "last_day"];

#[derive(Debug, Subcommand)]
pub enum DomainsCommand {
    /// List domains and what the last check of their DNS found
    List(PageArgs),
    /// Ask DNS about a domain now
    Check(DomainRef),
    /// Forget what the checks of a domain found
    Delete(DomainRef),
    /// List the DMARC and TLS reports about a domain, the latest first
    Reports(DomainReportsArgs),
    /// Sum up the reports: who sends in the domain's name and how it passes, unknown senders first
    Summary(DomainSummaryArgs),
}

#[derive(Args, Debug)]
pub struct DomainRef {
    /// The domain
    domain: String,
}

#[derive(Args, Debug)]
pub struct DomainReportsArgs {
    /// The domain
    domain: String,
    #[command(flatten)]
    page: PageArgs,
}

#[derive(Args, Debug)]
pub struct DomainSummaryArgs {
    /// The domain
    domain: String,
    /// How many days, today included [default: 30]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=400))]
    days: Option<u32>,
}

pub async fn run(context: &CommandContext, command: DomainsCommand) -> Result<(), CommandFailure> {
    let (client, output) = (context.client()?, context.output);
    match command {
        DomainsCommand::List(page) => {
            let nothing = "there are no domains: check one, or create a key with `postway dkim create`";
            pages::print(&client, output, &["v1", "domains"], Vec::new(), page, &COLUMNS, nothing).await
        }
        DomainsCommand::Check(DomainRef { domain }) => {
            let path = ["v1", "domains", &domain, "check"];
            let found = client.call(Method::POST, &path, &[], RequestBody::Empty).await?;
            output.show(&found, render_check)
        }
        DomainsCommand::Delete(DomainRef { domain }) => {
            let path = ["v1", "domains", &domain];
            let answer = client.call(Method::DELETE, &path, &[], RequestBody::Empty).await?;
            match output.is_json() {
                true => output.json(&answer),
                false => output.text(&format!("what was found about {domain} is forgotten")),
            }
        }
        DomainsCommand::Reports(DomainReportsArgs { domain, page }) => {
            let path = ["v1", "domains", &domain, "reports"];
            let nothing = "there are no reports; a mailbox with the role domain_reports reads them";
            pages::print(&client, output, &path, Vec::new(), page, &REPORT_COLUMNS, nothing).await
        }
        DomainsCommand::Summary(DomainSummaryArgs { domain, days }) => {
            let query: Vec<_> = days.map(|days| ("days", days.to_string())).into_iter().collect();
            let path = ["v1", "domains", &domain, "reports", "summary"];
            output.show(&client.get(&path, &query).await?, render_summary)
        }
    }
}

fn render_check(output: CommandOutput, found: &Value) -> String {
    let columns = ["check", "state", "found", "advice"];
    let findings = list(found, "findings");
    output.table(&columns, findings.iter().map(|finding| row(finding, &columns)))
}

fn render_summary(output: CommandOutput, summary: &Value) -> String {
    let (dmarc, tls) = (&summary["dmarc"], &summary["tls"]);
    let figures = output.fields([
        ("domain", field(summary, "domain")),
        ("since", field(summary, "since")),
        ("messages", field(dmarc, "total")),
        ("passed DMARC", field(dmarc, "passed")),
        ("failed DMARC", field(dmarc, "failed")),
        ("unproven", field(dmarc, "unproven")),
        ("TLS sessions", field(tls, "total")),
        ("TLS failures", field(tls, "failed")),
    ]);
    let table = |columns: &[&str], of: &Value, name| {
        let rows = list(of, name);
        (!rows.is_empty()).then(|| output.table(columns, rows.iter().map(|one| row(one, columns))))
    };
    let parts =
        [Some(figures), table(&SOURCE_COLUMNS, dmarc, "sources"), table(&FAILURE_COLUMNS, tls, "failures")];
    parts.into_iter().flatten().collect::<Vec<_>>().join("\n\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_summary_has_its_figures_then_its_sources_then_its_failures() {
        let summary = json!({
            "domain": "example.com", "since": "2026-11-01",
            "dmarc": {"total": 9, "passed": 7, "failed": 2, "unproven": 0, "sources": [
                {"address": null, "is_known": false, "total": 2, "last_day": "2026-11-09"},
                {"address": "192.0.2.1", "is_known": true, "total": 7, "last_day": "2026-11-09"},
            ]},
            "tls": {"total": 0, "failed": 0, "failures": []},
        });
        let text = render_summary(CommandOutput::new(false), &summary);
        assert!(text.contains("passed DMARC  7") && text.contains("192.0.2.1"), "{text}");
        assert!(!text.contains("SERVER"), "{text}");
    }
}
