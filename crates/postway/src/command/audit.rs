//! `postway audit`: who changed what, and when. Needs the admin key.

use clap::Args;
use reqwest::Method;

use super::CommandContext;
use crate::cli::client::RequestBody;
use crate::cli::failure::CommandFailure;
use crate::cli::pages::{self, PageArgs};

#[derive(Args, Debug)]
pub struct AuditArgs {
    /// Print the complete log as JSON lines
    #[arg(long, conflicts_with_all = ["limit", "cursor", "all"])]
    export: bool,
    #[command(flatten)]
    page: PageArgs,
}

/// Shows the audit log of the named tenant, or of all tenants.
pub async fn run(
    context: &CommandContext,
    AuditArgs { export, page }: AuditArgs,
) -> Result<(), CommandFailure> {
    let (client, output) = (context.client()?, context.output);
    let mut filters: Vec<_> =
        context.target.tenant.clone().map(|tenant| ("tenant", tenant)).into_iter().collect();
    if export {
        filters.push(("format", "jsonl".to_owned()));
        let log = client.call_for_bytes(Method::GET, &["v1", "audit"], &filters, RequestBody::Empty).await?;
        return output.bytes(&log);
    }
    let columns = ["at", "actor", "tenant", "action", "target", "request_id"];
    pages::print(&client, output, &["v1", "audit"], filters, page, &columns, "nothing was changed yet").await
}
