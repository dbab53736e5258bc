//! `postway audit`: who changed what, and when; and whether the log is whole. Needs the admin key.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::Value;

use super::{CommandContext, audit_chain::AuditChainCheck};
use crate::cli::client::{ApiClient, RequestBody};
use crate::cli::failure::CommandFailure;
use crate::cli::output::{CommandOutput, field, list};
use crate::cli::pages::{self, PageArgs};

/// How long the server waits for new lines before it answers.
const WAIT_S: u64 = 25;
/// How often the end is read again because a line came meanwhile.
const END_TRIES_MAX: u32 = 100;
/// Lines read at a time.
const PAGE: &str = "500";

#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub struct AuditArgs {
    #[command(subcommand)]
    command: Option<AuditCommand>,
    /// Print the complete log as JSON lines
    #[arg(long, conflicts_with_all = ["limit", "cursor", "all"])]
    export: bool,
    #[command(flatten)]
    filter: AuditFilterArgs,
    #[command(flatten)]
    page: PageArgs,
}

/// Which entries are shown.
#[derive(Args, Debug, Default)]
pub struct AuditFilterArgs {
    /// Only what this one did, such as user:ada
    #[arg(long, conflicts_with = "export")]
    actor: Option<String>,
    /// Only this action, such as account.change, or all that begin so, such as account.
    #[arg(long, conflicts_with = "export")]
    action: Option<String>,
    /// Only changes of this resource
    #[arg(long, conflicts_with = "export")]
    target: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// Print new lines as they come, with their digests, one JSON line each
    Follow(AuditFollowArgs),
    /// Check that no line was removed, changed or put in between
    Verify(AuditVerifyArgs),
}

#[derive(Args, Debug)]
pub struct AuditFollowArgs {
    /// Begin after this position [default: the first line that is kept]
    #[arg(long, value_name = "POSITION", default_value_t = 0)]
    after: u64,
    /// Print what is there, and end
    #[arg(long)]
    once: bool,
}

#[derive(Args, Debug)]
pub struct AuditVerifyArgs {
    /// Lines that were kept elsewhere, as `audit follow` printed them [default: the server's]
    file: Option<PathBuf>,
    /// A head that was noted earlier, as `verify` prints it: the chain must still go through it
    #[arg(long, value_name = "POSITION:DIGEST")]
    head: Option<String>,
}

/// Shows the audit log of the named tenant, or of all tenants; follows or verifies it.
pub async fn run(context: &CommandContext, args: AuditArgs) -> Result<(), CommandFailure> {
    let output = context.output;
    let AuditArgs { command, export, filter, page } = args;
    match command {
        Some(AuditCommand::Follow(args)) => return follow(&context.client()?, output, args).await,
        Some(AuditCommand::Verify(args)) => return verify(context, output, args).await,
        None => {}
    }
    let client = context.client()?;
    let mut filters: Vec<_> =
        context.target.tenant.clone().map(|tenant| ("tenant", tenant)).into_iter().collect();
    if export {
        filters.push(("format", "jsonl".to_owned()));
        let log = client.call_for_bytes(Method::GET, &["v1", "audit"], &filters, RequestBody::Empty).await?;
        return output.bytes(&log);
    }
    let narrowed = [("actor", filter.actor), ("action", filter.action), ("target", filter.target)];
    filters.extend(narrowed.into_iter().filter_map(|(name, value)| Some((name, value?))));
    let columns = ["at", "actor", "tenant", "action", "target", "request_id"];
    pages::print(&client, output, &["v1", "audit"], filters, page, &columns, "nothing was changed yet").await
}

async fn follow(
    client: &ApiClient,
    output: CommandOutput,
    args: AuditFollowArgs,
) -> Result<(), CommandFailure> {
    let mut after = args.after.to_string();
    loop {
        let page = lines(client, &after, !args.once).await?;
        let found = list(&page, "data");
        for line in found {
            output.text(&line.to_string())?;
        }
        if args.once && found.is_empty() {
            return Ok(());
        }
        after = field(&page, "position");
    }
}

async fn lines(client: &ApiClient, after: &str, waits: bool) -> Result<Value, CommandFailure> {
    let mut query = vec![("after", after.to_owned()), ("limit", PAGE.to_owned())];
    if waits {
        query.push(("wait", WAIT_S.to_string()));
    }
    client.get(&["v1", "audit", "lines"], &query).await
}

async fn verify(
    context: &CommandContext,
    output: CommandOutput,
    args: AuditVerifyArgs,
) -> Result<(), CommandFailure> {
    let noted = args.head.as_deref().map(str::parse).transpose().map_err(CommandFailure::Usage)?;
    let mut check = AuditChainCheck::new(noted);
    match args.file {
        Some(file) => {
            let text = std::fs::read_to_string(&file)
                .map_err(|error| CommandFailure::Usage(format!("cannot read {}: {error}", file.display())))?;
            for line in text.lines().filter(|line| !line.trim().is_empty()) {
                check.add(line);
            }
        }
        None => {
            let client = context.client()?;
            // As bytes, so that what is digested is what the server wrote.
            let whole = [("format", "jsonl".to_owned())];
            let path = ["v1", "audit", "lines"];
            let log = client.call_for_bytes(Method::GET, &path, &whole, RequestBody::Empty).await?;
            String::from_utf8_lossy(&log).lines().for_each(|line| check.add(line));
            check_end(&client, &mut check).await?;
        }
    }
    let result = check.finish();
    match output.is_json() {
        true => output.json(&result.to_json())?,
        false => output.text(&result.to_text())?,
    }
    if result.is_whole() {
        Ok(())
    } else {
        Err(CommandFailure::Failed(anyhow::anyhow!("the audit log is not whole")))
    }
}

/// Checks the lines that were written meanwhile, and the end of the chain.
async fn check_end(client: &ApiClient, check: &mut AuditChainCheck) -> Result<(), CommandFailure> {
    for tried in 1.. {
        let page = lines(client, &check.position().to_string(), false).await?;
        let found = list(&page, "data");
        found.iter().for_each(|line| check.add(&line.to_string()));
        // A line that comes between the reading of the lines and of the head is read the next time.
        let number = |name: &str| page["head"][name].as_i64().unwrap_or_default();
        let is_end = number("position") <= check.position().max(number("trimmed"));
        if found.is_empty() && (is_end || tried >= END_TRIES_MAX) {
            check.end_at(&page["head"]);
            break;
        }
    }
    Ok(())
}
