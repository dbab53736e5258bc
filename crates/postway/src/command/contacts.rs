//! `postway contacts`: names that rules look up, and the addresses behind them.

use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::{Map, Value};

use super::Session;
use crate::cli::client::Body;
use crate::cli::failure::Failure;
use crate::cli::output::{Output, field};
use crate::cli::pages::{self, PageArgs};

const COLUMNS: [&str; 4] = ["id", "name", "addresses", "updated_at"];

#[derive(Debug, Subcommand)]
pub enum ContactsCommand {
    /// List contacts
    List(ListArgs),
    /// Show one contact
    Show(ContactRef),
    /// Add a contact
    Add(AddArgs),
    /// Change a contact; its addresses are replaced
    Update(UpdateArgs),
    /// Remove a contact
    Remove(ContactRef),
}

#[derive(Args, Debug)]
pub struct ContactRef {
    /// The contact's id
    id: String,
}

#[derive(Args, Debug)]
pub struct ListArgs {
    /// Only the one of this name
    #[arg(long)]
    name: Option<String>,
    #[command(flatten)]
    page: PageArgs,
}

#[derive(Args, Debug)]
pub struct AddArgs {
    /// The name it is found by
    name: String,
    /// Its addresses
    #[arg(value_name = "ADDRESS")]
    addresses: Vec<String>,
    /// The contact's id [default: one is made]
    #[arg(long)]
    id: Option<String>,
}

#[derive(Args, Debug)]
pub struct UpdateArgs {
    /// The contact's id
    id: String,
    /// The name it is found by
    #[arg(long)]
    name: Option<String>,
    /// An address; may be repeated
    #[arg(long = "address", value_name = "ADDRESS")]
    addresses: Vec<String>,
}

pub async fn run(session: &Session, command: ContactsCommand) -> Result<(), Failure> {
    let (client, output) = (session.client()?, session.output);
    let all = ["v1", "contacts"];
    match command {
        ContactsCommand::List(ListArgs { name, page }) => {
            let filters = name.map(|name| ("name", name)).into_iter().collect();
            pages::print(&client, output, &all, filters, page, &COLUMNS, "no contacts").await
        }
        ContactsCommand::Show(ContactRef { id }) => {
            output.show(&client.get(&["v1", "contacts", &id], &[]).await?, render)
        }
        ContactsCommand::Add(AddArgs { name, addresses, id }) => {
            let body = body(id, Some(name), addresses);
            output.show(&client.call(Method::POST, &all, &[], Body::Json(&body)).await?, render)
        }
        ContactsCommand::Update(UpdateArgs { id, name, addresses }) => {
            let body = body(None, name, addresses);
            let path = ["v1", "contacts", &id];
            output.show(&client.call(Method::PATCH, &path, &[], Body::Json(&body)).await?, render)
        }
        ContactsCommand::Remove(ContactRef { id }) => {
            let answer = client.call(Method::DELETE, &["v1", "contacts", &id], &[], Body::Empty).await?;
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

fn render(output: Output, contact: &Value) -> String {
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
