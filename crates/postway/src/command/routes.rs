//! `postway routes`: rules that choose the account of mail that names none.

use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::{Map, Value, json};

use super::CommandContext;
use crate::cli::client::RequestBody;
use crate::cli::failure::CommandFailure;
use crate::cli::output::{CommandOutput, field, list};
use crate::cli::pages::{self, PageArgs};

const COLUMNS: [&str; 5] = ["position", "id", "match", "accounts", "active"];
/// The conditions, as the API calls them.
const CONDITIONS: [&str; 6] =
    ["sender_domains", "tags", "batches", "streams", "priorities", "recipient_domains"];

#[derive(Debug, Subcommand)]
pub enum RoutesCommand {
    /// List routes in the order in which they apply
    List(PageArgs),
    /// Show one route
    Show(RouteRef),
    /// Create a route
    #[command(alias = "add")]
    Create(RouteCreateArgs),
    /// Change a route
    Update(RouteUpdateArgs),
    /// Delete a route; its mail then takes the next one that matches, or the default account
    #[command(alias = "remove")]
    Delete(RouteRef),
    /// Give all routes a new order
    Order(RouteOrderArgs),
    /// Say which account a message would be sent by, without sending it
    Try(RouteTryArgs),
}

#[derive(Args, Debug)]
pub struct RouteRef {
    /// The route's id
    id: String,
}

#[derive(Args, Debug)]
pub struct RouteCreateArgs {
    /// The route's id
    id: String,
    #[command(flatten)]
    settings: RouteSettingsArgs,
}

#[derive(Args, Debug)]
pub struct RouteUpdateArgs {
    /// The route's id
    id: String,
    #[command(flatten)]
    settings: RouteSettingsArgs,
    /// Remove all conditions first: the route then matches all mail, or what the given conditions say
    #[arg(long)]
    any: bool,
}

#[derive(Args, Debug)]
pub struct RouteSettingsArgs {
    /// An account it chooses from; with a weight if there are several (repeatable)
    #[arg(long = "to", value_name = "ACCOUNT[=WEIGHT]")]
    to: Vec<String>,
    /// Match the domain of the author: example.com, or *.example.com for its subdomains (repeatable)
    #[arg(long, value_name = "DOMAIN")]
    sender_domain: Vec<String>,
    /// Match a tag (repeatable)
    #[arg(long)]
    tag: Vec<String>,
    /// Match a batch (repeatable)
    #[arg(long, value_name = "CODE")]
    batch: Vec<String>,
    /// Match a stream (repeatable)
    #[arg(long, value_name = "ID")]
    stream: Vec<String>,
    /// Match a priority: 0 to 3, or its name (repeatable)
    #[arg(long)]
    priority: Vec<String>,
    /// Match if every recipient is in one of these domains (repeatable)
    #[arg(long, value_name = "DOMAIN")]
    recipient_domain: Vec<String>,
    /// Its position; lower ones come first
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    position: Option<i64>,
    /// Whether it is active
    #[arg(long, value_name = "BOOL")]
    active: Option<bool>,
    /// What it is for
    #[arg(long)]
    description: Option<String>,
}

#[derive(Args, Debug)]
pub struct RouteOrderArgs {
    /// The ids of all routes, in their new order
    #[arg(required = true)]
    ids: Vec<String>,
}

#[derive(Args, Debug)]
pub struct RouteTryArgs {
    /// The author
    #[arg(long)]
    from: Option<String>,
    /// A recipient (repeatable)
    #[arg(long, value_name = "ADDRESS")]
    to: Vec<String>,
    /// A tag (repeatable)
    #[arg(long)]
    tag: Vec<String>,
    /// The batch
    #[arg(long, value_name = "CODE")]
    batch: Option<String>,
    /// The stream, if there is no batch
    #[arg(long, value_name = "ID")]
    stream: Option<String>,
    /// The priority: 0 to 3, or its name
    #[arg(long)]
    priority: Option<String>,
}

pub async fn run(context: &CommandContext, command: RoutesCommand) -> Result<(), CommandFailure> {
    let (client, output) = (context.client()?, context.output);
    let all = ["v1", "routes"];
    match command {
        RoutesCommand::List(page) => {
            let cells: pages::TableRows<'_> = (&COLUMNS, &cells);
            pages::print_rows(&client, output, &all, Vec::new(), page, cells, "no routes").await
        }
        RoutesCommand::Show(RouteRef { id }) => {
            output.show(&client.get(&["v1", "routes", &id], &[]).await?, render)
        }
        RoutesCommand::Create(RouteCreateArgs { id, settings }) => {
            let mut body = body(&settings, Map::new())?;
            body.insert("id".to_owned(), id.into());
            let body = Value::Object(body);
            output.show(&client.call(Method::POST, &all, &[], RequestBody::Json(&body)).await?, render)
        }
        RoutesCommand::Update(RouteUpdateArgs { id, settings, any }) => {
            let path = ["v1", "routes", &id];
            // `match` is replaced as a whole, so what stays of it is read first.
            let current = client.get(&path, &[]).await?;
            let known = match any {
                true => Map::new(),
                false => current["match"].as_object().cloned().unwrap_or_default(),
            };
            let mut body = body(&settings, known.clone())?;
            if any {
                body.entry("match").or_insert_with(|| Value::Object(known));
            }
            body.insert("version".to_owned(), current["version"].clone());
            let body = Value::Object(body);
            output.show(&client.call(Method::PATCH, &path, &[], RequestBody::Json(&body)).await?, render)
        }
        RoutesCommand::Delete(RouteRef { id }) => {
            let path = ["v1", "routes", &id];
            let answer = client.call(Method::DELETE, &path, &[], RequestBody::Empty).await?;
            match output.is_json() {
                true => output.json(&answer),
                false => output.text(&format!("route {id} is removed")),
            }
        }
        RoutesCommand::Order(RouteOrderArgs { ids }) => {
            let (path, body) = (["v1", "routes", "order"], json!({"ids": ids}));
            let answer = client.call(Method::POST, &path, &[], RequestBody::Json(&body)).await?;
            output.show(&answer, |output, answer| {
                output.table(&COLUMNS, list(answer, "data").iter().map(cells))
            })
        }
        RoutesCommand::Try(args) => {
            let RouteTryArgs { from, to, tag, batch, stream, priority } = args;
            let mut body = json!({"from": from, "to": to, "tags": tag, "batch": batch, "stream": stream});
            body["priority"] = priority.as_deref().map_or(Value::Null, priority_value);
            let path = ["v1", "routes", "try"];
            let answer = client.call(Method::POST, &path, &[], RequestBody::Json(&body)).await?;
            output.show(&answer, render_trial)
        }
    }
}

/// The fields that were given, as the API takes them; conditions replace those of `known`.
fn body(args: &RouteSettingsArgs, known: Map<String, Value>) -> Result<Map<String, Value>, CommandFailure> {
    let mut body = Map::new();
    let given =
        [&args.sender_domain, &args.tag, &args.batch, &args.stream, &args.priority, &args.recipient_domain];
    if given.iter().any(|list| !list.is_empty()) {
        let mut conditions = known;
        for (name, values) in CONDITIONS.into_iter().zip(given).filter(|(_, values)| !values.is_empty()) {
            let values = values.iter().map(|value| match name {
                "priorities" => priority_value(value),
                _ => Value::from(value.as_str()),
            });
            conditions.insert(name.to_owned(), values.collect());
        }
        body.insert("match".to_owned(), Value::Object(conditions));
    }
    if !args.to.is_empty() {
        let accounts = args.to.iter().map(|to| target(to)).collect::<Result<Vec<_>, _>>()?;
        body.insert("accounts".to_owned(), accounts.into());
    }
    let fields = [
        ("position", args.position.map(Value::from)),
        ("active", args.active.map(Value::from)),
        ("description", args.description.clone().map(Value::from)),
    ];
    body.extend(fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
    Ok(body)
}

/// A number as a number, a name as a text.
fn priority_value(given: &str) -> Value {
    given.parse::<i64>().map_or_else(|_| Value::from(given), Value::from)
}

/// `ACCOUNT` or `ACCOUNT=WEIGHT`.
fn target(given: &str) -> Result<Value, CommandFailure> {
    match given.split_once('=') {
        None => Ok(json!({"account": given})),
        Some((account, weight)) => match weight.parse::<u32>() {
            Ok(weight) => Ok(json!({"account": account, "weight": weight})),
            Err(_) => {
                let message = format!("`{given}`: the weight must be a whole number, as in relay-1=3");
                Err(CommandFailure::Usage(message))
            }
        },
    }
}

fn cells(route: &Value) -> Vec<String> {
    COLUMNS
        .iter()
        .map(|column| match *column {
            "match" => conditions(route).join("; "),
            "accounts" => targets(route).join(", "),
            column => field(route, column),
        })
        .collect()
}

/// Each condition in words, or `all mail` without any.
fn conditions(route: &Value) -> Vec<String> {
    let of = |name: &str| {
        let values: Vec<String> = list(&route["match"], name)
            .iter()
            .map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
            .collect();
        (!values.is_empty()).then(|| format!("{}: {}", name.replace('_', " "), values.join(", ")))
    };
    let conditions: Vec<String> = CONDITIONS.iter().filter_map(|name| of(name)).collect();
    if conditions.is_empty() { vec!["all mail".to_owned()] } else { conditions }
}

fn targets(route: &Value) -> Vec<String> {
    let accounts = list(route, "accounts");
    let target = |target: &Value| {
        let weight = if accounts.len() > 1 { format!("={}", target["weight"]) } else { String::new() };
        let missing = if target["missing"] == true { " (missing)" } else { "" };
        format!("{}{weight}{missing}", field(target, "account"))
    };
    accounts.iter().map(target).collect()
}

fn render(output: CommandOutput, route: &Value) -> String {
    output.fields([
        ("id", field(route, "id")),
        ("position", field(route, "position")),
        ("active", field(route, "active")),
        ("description", field(route, "description")),
        ("match", conditions(route).join("; ")),
        ("accounts", targets(route).join(", ")),
        ("version", field(route, "version")),
        ("updated_at", field(route, "updated_at")),
    ])
}

fn render_trial(output: CommandOutput, trial: &Value) -> String {
    let decides = match trial["route"].as_str() {
        Some(route) => format!("route {route} decides"),
        None => "no route matches: the default account sends".to_owned(),
    };
    let accounts = output.table(
        &["account", "weight", "held_by"],
        list(trial, "accounts").iter().map(|one| pages::row(one, &["account", "weight", "held_by"])),
    );
    let steps = list(trial, "steps").iter().map(|step| {
        let conditions = list(step, "conditions").iter().map(|one| {
            let holds = if one["holds"] == true { "yes" } else { "no" };
            format!("{}: {holds}", field(one, "condition"))
        });
        let verdict = match (step["matched"] == true, step["passed_over"] == true) {
            (true, true) => "matches, but its accounts are gone",
            (true, false) => "matches",
            (false, _) => "does not match",
        };
        vec![field(step, "route"), verdict.to_owned(), conditions.collect::<Vec<_>>().join(", ")]
    });
    let steps: Vec<_> = steps.collect();
    match steps.is_empty() {
        true => format!("{decides}\n\n{accounts}"),
        false => format!("{decides}\n\n{accounts}\n\n{}", output.table(&["route", "", "conditions"], steps)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_is_shown_in_words() {
        let route = json!({"id": "news", "position": 1, "active": true, "match": {"tags": ["a", "b"], "priorities": [3]},
            "accounts": [{"account": "x", "weight": 3, "missing": false}, {"account": "y", "weight": 1, "missing": true}]});
        assert_eq!(cells(&route), ["1", "news", "tags: a, b; priorities: 3", "x=3, y=1 (missing)", "true"]);
        let all = json!({"id": "all", "match": {}, "accounts": [{"account": "x", "weight": 1}]});
        assert_eq!((conditions(&all), targets(&all)), (vec!["all mail".to_owned()], vec!["x".to_owned()]));
    }

    #[test]
    fn an_account_may_have_a_weight() {
        assert_eq!(target("a").unwrap(), json!({"account": "a"}));
        assert_eq!(target("a=3").unwrap(), json!({"account": "a", "weight": 3}));
        assert!(target("a=x").is_err());
    }

    #[test]
    fn a_trial_names_the_route_that_decides() {
        let trial = json!({"route": "news", "accounts": [{"account": "x", "weight": 1, "held_by": null}],
            "steps": [{"route": "old", "matched": true, "passed_over": true, "conditions": []},
                      {"route": "news", "matched": true, "passed_over": false,
                       "conditions": [{"condition": "tag", "holds": true}]}]});
        let text = render_trial(CommandOutput::new(false), &trial);
        for part in ["route news decides", "its accounts are gone", "tag: yes"] {
            assert!(text.contains(part), "{part} is missing in:\n{text}");
        }
    }
}
