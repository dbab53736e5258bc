//! `postway contacts`: names that rules look up, with their addresses.

use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::{Map, Value};

use super::CommandContext;
use crate::cli::client::RequestBody;
use crate::cli::failure::CommandFailure;
use crate::cli::output::{CommandOutput, field};
use crate::cli::pages::{self, PageArgs};

const COLUMNS: [&str; 4] = ["id", "name", "addresses", "updated_at"];

#[derive(Debug, Subcommand)]
pub enum ContactsCommand {
    /// List contacts
    List(ContactListArgs),
    /// Show one contact
    Show(ContactRef),
    /// Create a contact
    #[command(alias = "add")]
    Create(ContactCreateArgs),
    /// Change a contact; its addresses are replaced
    Update(ContactUpdateArgs),
    /// Delete a contact
    #[command(alias = "remove")]
    Delete(ContactRef),
}

#[derive(Args, Debug)]
pub struct ContactRef {
    /// The contact's id
    id: String,
}

#[derive(Args, Debug)]
pub struct ContactListArgs {
    /// Only the contact with this name
    #[arg(long)]
    name: Option<String>,
    #[command(flatten)]
    page: PageArgs,
}

#[derive(Args, Debug)]
pub struct ContactCreateArgs {
    /// The name that rules look up
    name: String,
    /// Its addresses
    #[arg(value_name = "ADDRESS")]
    addresses: Vec<String>,
    /// The contact's id [default: one is made]
    #[arg(long)]
    id: Option<String>,
}

#[derive(Args, Debug)]
pub struct ContactUpdateArgs {
    /// The contact's id
    id: String,
    /// The name that rules look up
    #[arg(long)]
    name: Option<String>,
    /// An address; may be repeated
    #[arg(long = "address", value_name = "ADDRESS")]
    addresses: Vec<String>,
}

pub async fn run(context: &CommandContext, command: ContactsCommand) -> Result<(), CommandFailure> {
    let (client, output) = (context.client()?, context.output);
    let all = ["v1", "contacts"];
    match command {
        ContactsCommand::List(ContactListArgs { name, page }) => {
            let filters = name.map(|name| ("name", name)).into_iter().collect();
            pages::print(&client, output, &all, filters, page, &COLUMNS, "no contacts").await
        }
        ContactsCommand::Show(ContactRef { id }) => {
            output.show(&client.get(&["v1", "contacts", &id], &[]).await?, render)
        }
        ContactsCommand::Create(ContactCreateArgs { name, addresses, id }) => {
            let body = body(id, Some(name), addresses);
            output.show(&client.call(Method::POST, &all, &[], RequestBody::Json(&body)).await?, render)
        }
        ContactsCommand::Update(ContactUpdateArgs { id, name, addresses }) => {
            let body = body(None, name, addresses);
            let path = ["v1", "contacts", &id];
            output.show(&client.call(Method::PATCH, &path, &[], RequestBody::Json(&body)).await?, render)
        }
        ContactsCommand::Delete(ContactRef { id }) => {
            let answer =
                client.call(Method::DELETE, &["v1", "contacts", &id], &[], RequestBody::Empty).await?;
            match output.is_json() {
                true => output.json(&answer),
                false => output.text(&format!("contact {id} is removed")),
            }
        }
    }
}

/// The contact as the API takes it.
fn body(id: Option<String>, name: Option<String>, addresses: Vec<String>) -> Value {
    let fields = [
        ("id", id.map(Value::from)),
        ("name", name.map(Value::from)),
        ("addresses", (!addresses.is_empty()).then(|| Value::from(addresses))),
    ];
    let given = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(given.collect::<Map<_, _>>())
}

fn render(output: CommandOutput, contact: &Value) -> String {
    output.fields(COLUMNS.map(|name| (name, field(contact, name))))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_is_given_is_sent() {
        assert_eq!(body(None, Some("ACME".into()), Vec::new()), json!({"name": "ACME"}));
        let one = body(Some("a".into()), None, vec!["ada@example.net".into()]);
        assert_eq!(one, json!({"id": "a", "addresses": ["ada@example.net"]}));
    }
}
