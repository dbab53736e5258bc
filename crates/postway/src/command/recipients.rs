//! `postway recipients`: people that a tenant writes to.

use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::{Map, Value};

use super::CommandContext;
use crate::cli::client::RequestBody;
use crate::cli::failure::CommandFailure;
use crate::cli::output::{CommandOutput, field};
use crate::cli::pages::{self, PageArgs};

const COLUMNS: [&str; 6] = ["id", "external_id", "name", "address", "personal_number", "created_at"];

#[derive(Debug, Subcommand)]
pub enum RecipientsCommand {
    /// List recipients that are not deleted
    List(RecipientListArgs),
    /// Create a recipient
    #[command(alias = "add")]
    Create(RecipientCreateArgs),
    /// Show one recipient
    Show(RecipientRef),
    /// Delete a recipient, which then gets no more mail
    Delete(RecipientRef),
}

#[derive(Args, Debug)]
pub struct RecipientRef {
    /// Its id, or external: and your own id
    id: String,
}

#[derive(Args, Debug)]
pub struct RecipientListArgs {
    /// Only those with this address
    #[arg(long)]
    address: Option<String>,
    /// Only the recipient with this external id
    #[arg(long, value_name = "ID")]
    external_id: Option<String>,
    /// Only the recipient with this personal number
    #[arg(long, value_name = "NUMBER")]
    personal_number: Option<String>,
    #[command(flatten)]
    page: PageArgs,
}

#[derive(Args, Debug, Default)]
pub struct RecipientCreateArgs {
    /// The address
    address: String,
    /// Your own id of the recipient
    #[arg(long, value_name = "ID")]
    external_id: Option<String>,
    /// The name, for people
    #[arg(long)]
    name: Option<String>,
    /// The language of its mail, such as de-AT [default: the tenant's]
    #[arg(long)]
    locale: Option<String>,
    /// A personal number: encrypted by the server, shown masked; others on this machine can see it in the
    /// list of processes
    #[arg(long, value_name = "NUMBER")]
    personal_number: Option<String>,
}

pub async fn run(context: &CommandContext, command: RecipientsCommand) -> Result<(), CommandFailure> {
    let (client, output) = (context.client()?, context.output);
    let all = ["v1", "recipients"];
    match command {
        RecipientsCommand::List(args) => {
            let filters = [
                ("address", args.address),
                ("external_id", args.external_id),
                ("personal_number", args.personal_number),
            ];
            let filters = filters.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
            pages::print(&client, output, &all, filters, args.page, &COLUMNS, "no recipients").await
        }
        RecipientsCommand::Create(args) => {
            let body = Value::Object(args.body());
            output.show(&client.call(Method::POST, &all, &[], RequestBody::Json(&body)).await?, render)
        }
        RecipientsCommand::Show(RecipientRef { id }) => {
            output.show(&client.get(&["v1", "recipients", &id], &[]).await?, render)
        }
        RecipientsCommand::Delete(RecipientRef { id }) => {
            let answer =
                client.call(Method::DELETE, &["v1", "recipients", &id], &[], RequestBody::Empty).await?;
            match output.is_json() {
                true => output.json(&answer),
                false => output.text(&format!("recipient {id} is deleted")),
            }
        }
    }
}

impl RecipientCreateArgs {
    /// The recipient as the API takes it.
    fn body(self) -> Map<String, Value> {
        let fields = [
            ("address", Some(self.address)),
            ("external_id", self.external_id),
            ("name", self.name),
            ("personal_number", self.personal_number),
            ("locale", self.locale),
        ];
        fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), Value::from(value?)))).collect()
    }
}

fn render(output: CommandOutput, recipient: &Value) -> String {
    let more = COLUMNS.into_iter().chain(["updated_at", "deleted_at"]);
    output.fields(more.map(|name| (name, field(recipient, name))))
}
