//! `postway streams`: kinds of mail that readers can unsubscribe from separately.

use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::{Map, Value};

use super::CommandContext;
use crate::cli::client::RequestBody;
use crate::cli::failure::CommandFailure;
use crate::cli::output::{CommandOutput, field, list};
use crate::cli::pages::{self, PageArgs, row};

const COLUMNS: [&str; 4] = ["id", "name", "unsubscribe", "description"];
const COUNTS: [&str; 9] = [
    "at",
    "sent",
    "delivered",
    "bounced",
    "complained",
    "unsubscribed",
    "suppressed",
    "complaint_rate",
    "unsubscribe_rate",
];
const FIELDS: [&str; 6] = ["id", "name", "description", "unsubscribe", "unsubscribe_mailto", "updated_at"];

#[derive(Debug, Subcommand)]
pub enum StreamsCommand {
    /// List streams
    List(PageArgs),
    /// Show one stream
    Show(StreamRef),
    /// Show a stream's mail by hour or day, with the rates of complaints and of readers who left
    History(StreamHistoryArgs),
    /// Create a stream
    #[command(alias = "add")]
    Create(StreamArgs),
    /// Change a stream
    Update(StreamArgs),
    /// Delete a stream; readers who left it stay unsubscribed
    #[command(alias = "remove")]
    Delete(StreamRef),
}

#[derive(Args, Debug)]
pub struct StreamRef {
    /// The stream's id
    id: String,
}

#[derive(Args, Debug)]
pub struct StreamHistoryArgs {
    /// The stream's id
    id: String,
    /// By hour or by day, in UTC
    #[arg(long, value_parser = ["hour", "day"], default_value = "day")]
    by: String,
    /// From this time on (RFC 3339 or Unix seconds) [default: 30 days back by day, one by hour]
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Before this time [default: now]
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
}

#[derive(Args, Debug)]
pub struct StreamArgs {
    /// The stream's id
    id: String,
    /// The name that readers see
    #[arg(long)]
    name: Option<String>,
    /// What it is for
    #[arg(long)]
    description: Option<String>,
    /// Whether readers can unsubscribe from it
    #[arg(long, value_name = "BOOL")]
    unsubscribe: Option<bool>,
    /// An address of a watched mailbox that readers can write to in order to unsubscribe
    #[arg(long, value_name = "ADDRESS")]
    mailto: Option<String>,
}

pub async fn run(context: &CommandContext, command: StreamsCommand) -> Result<(), CommandFailure> {
    let (client, output) = (context.client()?, context.output);
    let all = ["v1", "streams"];
    match command {
        StreamsCommand::List(page) => {
            pages::print(&client, output, &all, Vec::new(), page, &COLUMNS, "no streams").await
        }
        StreamsCommand::Show(StreamRef { id }) => {
            output.show(&client.get(&["v1", "streams", &id], &[]).await?, render)
        }
        StreamsCommand::History(args) => {
            let times = [("since", args.since), ("until", args.until)];
            let times = times.into_iter().filter_map(|(name, time)| Some((name, time?)));
            let query: Vec<_> = [("by", args.by)].into_iter().chain(times).collect();
            let found = client.get(&["v1", "streams", &args.id, "statistics"], &query).await?;
            output.show(&found, |output, found| {
                let rows = list(found, "data").iter().map(|one| row(one, &COUNTS));
                let total = [row(&found["total"], &COUNTS)];
                output.table(&COUNTS, rows.chain(total))
            })
        }
        StreamsCommand::Create(args) => {
            let mut body = body(&args);
            body.insert("id".to_owned(), args.id.into());
            let body = Value::Object(body);
            output.show(&client.call(Method::POST, &all, &[], RequestBody::Json(&body)).await?, render)
        }
        StreamsCommand::Update(args) => {
            let (body, path) = (Value::Object(body(&args)), ["v1", "streams", &args.id]);
            output.show(&client.call(Method::PATCH, &path, &[], RequestBody::Json(&body)).await?, render)
        }
        StreamsCommand::Delete(StreamRef { id }) => {
            let answer =
                client.call(Method::DELETE, &["v1", "streams", &id], &[], RequestBody::Empty).await?;
            match output.is_json() {
                true => output.json(&answer),
                false => output.text(&format!("stream {id} is removed")),
            }
        }
    }
}

/// The stream as the API takes it, but for its id.
fn body(args: &StreamArgs) -> Map<String, Value> {
    let fields = [
        ("name", args.name.clone().map(Value::from)),
        ("description", args.description.clone().map(Value::from)),
        ("unsubscribe", args.unsubscribe.map(Value::from)),
        ("unsubscribe_mailto", args.mailto.clone().map(Value::from)),
    ];
    fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

fn render(output: CommandOutput, stream: &Value) -> String {
    output.fields(FIELDS.map(|name| (name, field(stream, name))))
}
