//! `postway batches`: messages that are suspended and activated together.

use clap::{Args, Subcommand};
use reqwest::Method;

use super::CommandContext;
use crate::cli::client::RequestBody;
use crate::cli::failure::CommandFailure;
use crate::cli::output::field;
use crate::cli::pages::{self, PageArgs};

const COLUMNS: [&str; 4] = ["code", "suspended", "suspended_since", "waiting"];

#[derive(Debug, Subcommand)]
pub enum BatchesCommand {
    /// List batches and how many of their messages wait
    List(PageArgs),
    /// Suspend a batch, also before its first message
    Suspend(BatchRef),
    /// Activate a batch again
    Activate(BatchRef),
}

#[derive(Args, Debug)]
pub struct BatchRef {
    /// The batch's code
    code: String,
}

pub async fn run(context: &CommandContext, command: BatchesCommand) -> Result<(), CommandFailure> {
    let (client, output) = (context.client()?, context.output);
    let (BatchRef { code }, verb) = match command {
        BatchesCommand::List(page) => {
            let path = ["v1", "batches"];
            return pages::print(&client, output, &path, Vec::new(), page, &COLUMNS, "no batches").await;
        }
        BatchesCommand::Suspend(batch) => (batch, "suspend"),
        BatchesCommand::Activate(batch) => (batch, "activate"),
    };
    let answer = client.call(Method::POST, &["v1", "batches", &code, verb], &[], RequestBody::Empty).await?;
    output.show(&answer, |output, answer| output.fields(COLUMNS.map(|name| (name, field(answer, name)))))
}
