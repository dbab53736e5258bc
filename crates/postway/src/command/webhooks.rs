//! `postway webhooks`: URLs that are called for the events of messages.

use std::time::Duration;

use clap::{Args, Subcommand};
use postway_domain::{Clock as _, Time};
use reqwest::Method;
use serde_json::{Map, Value, json};

use super::CommandContext;
use crate::cli::client::{ApiClient, RequestBody};
use crate::cli::failure::CommandFailure;
use crate::cli::output::{CommandOutput, field, list};
use crate::cli::pages::{self, PageArgs};
use crate::cli::progress::SpinnerProgress;
use crate::cluster::clock::NodeClock;

/// A due call is made sooner than this, unless the server is pausing the webhook.
const OVERDUE: Duration = Duration::from_secs(10);

#[derive(Debug, Subcommand)]
pub enum WebhooksCommand {
    /// List webhooks
    List,
    /// Create a webhook and print its secret, this once
    #[command(alias = "add")]
    Create(WebhookCreateArgs),
    /// Show one webhook
    Show(WebhookRef),
    /// Change a webhook, or switch it on or off
    Update(WebhookUpdateArgs),
    /// Delete a webhook, with its pending notifications
    #[command(alias = "remove")]
    Delete(WebhookRef),
    /// Give a webhook a new secret and print it, this once; the earlier one works for another day
    Rotate(WebhookRef),
    /// Call a webhook with a test event
    Test(WebhookRef),
    /// List the notifications of a webhook, delivered and pending
    Deliveries(WebhookDeliveriesArgs),
    /// Deliver again the notifications that were given up, or one event
    Resend(WebhookResendArgs),
}

#[derive(Args, Debug)]
pub struct WebhookRef {
    /// The webhook's id
    id: String,
}

#[derive(Args, Debug)]
pub struct WebhookCreateArgs {
    /// Where to call
    #[arg(value_name = "URL")]
    target: String,
    #[command(flatten)]
    fields: WebhookFieldArgs,
}

#[derive(Args, Debug)]
pub struct WebhookUpdateArgs {
    /// The webhook's id
    id: String,
    /// Where to call
    #[arg(long, value_name = "URL")]
    target: Option<String>,
    #[command(flatten)]
    fields: WebhookFieldArgs,
}

#[derive(Args, Debug, Default)]
pub struct WebhookFieldArgs {
    /// An event to be notified of, as in email.sent; may be repeated [default: all]
    #[arg(long = "event", value_name = "NAME")]
    events: Vec<String>,
    /// The format of its calls
    #[arg(long, value_parser = ["postway", "resend", "postmark"])]
    form: Option<String>,
    /// What it is for
    #[arg(long)]
    description: Option<String>,
    /// Whether it is notified at all
    #[arg(long, value_name = "BOOL")]
    active: Option<bool>,
}

#[derive(Args, Debug)]
pub struct WebhookDeliveriesArgs {
    /// The webhook's id, or client_sync
    id: String,
    /// Only notifications in this state
    #[arg(long, value_parser = ["pending", "calling", "waiting", "acknowledged", "dead"])]
    status: Option<String>,
    #[command(flatten)]
    page: PageArgs,
}

#[derive(Args, Debug)]
pub struct WebhookResendArgs {
    /// The webhook's id, or client_sync
    id: String,
    /// The message's uid, to deliver one event again
    #[arg(requires = "sequence", conflicts_with = "since", required_unless_present = "since")]
    uid: Option<String>,
    /// The event's position in the message's history
    sequence: Option<u32>,
    /// Deliver again what was due since this time and was given up (RFC 3339 or Unix seconds)
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only what was due before this time [default: until now]
    #[arg(long, value_name = "TIME", requires = "since")]
    until: Option<String>,
    /// Also those that were acknowledged
    #[arg(long, requires = "since", conflicts_with = "dead")]
    all: bool,
    /// Only those that were given up [default]
    #[arg(long, requires = "since")]
    dead: bool,
}

pub async fn run(context: &CommandContext, command: WebhooksCommand) -> Result<(), CommandFailure> {
    let (client, output) = (context.client()?, context.output);
    let all = ["v1", "webhooks"];
    match command {
        WebhooksCommand::List => {
            let webhooks = client.get(&all, &[]).await?;
            let behind = match output.is_json() {
                true => Value::Null,
                false => client.get(&["v1", "overview"], &[]).await?,
            };
            output.show(&webhooks, |output, webhooks| render_list(output, webhooks, &behind))
        }
        WebhooksCommand::Create(WebhookCreateArgs { target, fields }) => {
            let body = fields.body(Some(target));
            output.show(&client.call(Method::POST, &all, &[], RequestBody::Json(&body)).await?, render)
        }
        WebhooksCommand::Show(WebhookRef { id }) => {
            let webhook = client.get(&["v1", "webhooks", &id], &[]).await?;
            if output.is_json() {
                return output.json(&webhook);
            }
            let query = [("status", "waiting".to_owned())];
            let waiting = client.get(&["v1", "webhooks", &id, "deliveries"], &query).await?;
            let overdue = overdue(&waiting, NodeClock::default().now());
            let text = [Some(render(output, &webhook)), overdue].into_iter().flatten().collect::<Vec<_>>();
            output.text(&text.join("\n"))
        }
        WebhooksCommand::Update(WebhookUpdateArgs { id, target, fields }) => {
            let body = fields.body(target);
            let path = ["v1", "webhooks", &id];
            output.show(&client.call(Method::PATCH, &path, &[], RequestBody::Json(&body)).await?, render)
        }
        WebhooksCommand::Delete(WebhookRef { id }) => {
            let answer =
                client.call(Method::DELETE, &["v1", "webhooks", &id], &[], RequestBody::Empty).await?;
            match output.is_json() {
                true => output.json(&answer),
                false => output.text(&format!("webhook {id} is removed")),
            }
        }
        WebhooksCommand::Rotate(WebhookRef { id }) => {
            let path = ["v1", "webhooks", &id, "rotate"];
            output.show(&client.call(Method::POST, &path, &[], RequestBody::Empty).await?, render)
        }
        WebhooksCommand::Test(WebhookRef { id }) => {
            let path = ["v1", "webhooks", &id, "test"];
            let test = client.call(Method::POST, &path, &[], RequestBody::Empty).await?;
            output.show(&test, |output, test| {
                output.fields(["ok", "status", "latency_ms", "answer"].map(|name| (name, field(test, name))))
            })?;
            match test.get("ok").and_then(Value::as_bool) {
                Some(true) => Ok(()),
                _ => Err(CommandFailure::Failed(anyhow::anyhow!(
                    "the webhook {id} did not take the test event"
                ))),
            }
        }
        WebhooksCommand::Deliveries(WebhookDeliveriesArgs { id, status, page }) => {
            let filters = status.map(|status| ("status", status)).into_iter().collect();
            let columns =
                ["message", "sequence", "event", "status", "tries", "created_at", "next_at", "settled_at"];
            let path = ["v1", "webhooks", &id, "deliveries"];
            pages::print(&client, output, &path, filters, page, &columns, "it has no notifications yet").await
        }
        WebhooksCommand::Resend(WebhookResendArgs {
            id, uid: Some(uid), sequence: Some(sequence), ..
        }) => {
            let sequence = sequence.to_string();
            let path = ["v1", "webhooks", &id, "deliveries", &uid, &sequence, "resend"];
            let answer = client.call(Method::POST, &path, &[], RequestBody::Empty).await?;
            let columns = ["message", "sequence", "event", "status", "next_at"];
            output.show(&answer, |output, resent| {
                output.fields(columns.map(|name| (name, field(resent, name))))
            })
        }
        WebhooksCommand::Resend(args) => resend_all(&client, output, args).await,
    }
}

/// Calls the server until nothing is left, and prints how many notifications are delivered again.
async fn resend_all(
    client: &ApiClient,
    output: CommandOutput,
    args: WebhookResendArgs,
) -> Result<(), CommandFailure> {
    // Without either flag, only dead notifications.
    let which = if args.all && !args.dead { "all" } else { "dead" };
    let mut body = json!({"since": args.since, "until": args.until, "which": which});
    let (mut resent, mut rounds) = (0, SpinnerProgress::start());
    loop {
        let path = ["v1", "webhooks", &args.id, "resend"];
        let answer = client.call(Method::POST, &path, &[], RequestBody::Json(&body)).await?;
        resent += answer["resent"].as_u64().unwrap_or(0);
        match &answer["next_cursor"] {
            Value::Null => break,
            next => body["cursor"] = next.clone(),
        }
        rounds.show_progress(format!("{resent} are delivered again"));
    }
    drop(rounds);
    match output.is_json() {
        true => output.json(&json!({"resent": resent})),
        false => output.text(&format!("{resent} are delivered again")),
    }
}

impl WebhookFieldArgs {
    /// The webhook as the API takes it.
    fn body(self, url: Option<String>) -> Value {
        let events = (!self.events.is_empty()).then(|| Value::from(self.events));
        let fields = [
            ("url", url.map(Value::from)),
            ("events", events),
            ("form", self.form.map(Value::from)),
            ("description", self.description.map(Value::from)),
            ("active", self.active.map(Value::from)),
        ];
        let given = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        Value::Object(given.collect::<Map<_, _>>())
    }
}

/// Adds whether each webhook has due calls, from the overview.
fn render_list(output: CommandOutput, webhooks: &Value, overview: &Value) -> String {
    let columns = ["id", "kind", "url", "events", "active", "calls due", "created_at"];
    let is_due = |webhook: &Value| {
        let behind = list(overview, "subscribers").iter().filter(|one| one["due"] == true);
        behind.into_iter().any(|one| one["id"] == webhook["id"])
    };
    let cells = |webhook: &Value| {
        let cell = |column: &&str| match *column {
            "calls due" if is_due(webhook) => "yes".to_owned(),
            "calls due" => String::new(),
            column => field(webhook, column),
        };
        columns.iter().map(cell).collect()
    };
    output.table(&columns, list(webhooks, "data").iter().map(cells))
}

/// The hint about failed calls that are due again but not made, because the server is pausing the webhook.
fn overdue(waiting: &Value, now: Time) -> Option<String> {
    let times =
        list(waiting, "data").iter().filter_map(|delivery| delivery["next_at"].as_str()?.parse().ok());
    let first: Time = times.min()?;
    let count = list(waiting, "data").len();
    let more = if waiting["next_cursor"].is_null() { "" } else { " and more" };
    (now.since(first) >= OVERDUE).then(|| {
        format!(
            "{count}{more} calls failed and are due since {first}: after three failures in a row it is left alone and \
             tried every five minutes"
        )
    })
}

fn render(output: CommandOutput, webhook: &Value) -> String {
    const FIELDS: [&str; 12] = [
        "id",
        "kind",
        "form",
        "url",
        "events",
        "description",
        "active",
        "disabled_reason",
        "quiet_until",
        "secret",
        "created_at",
        "updated_at",
    ];
    output.fields(FIELDS.map(|name| (name, field(webhook, name))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_are_due_and_not_made_are_told() {
        let now = "2030-01-01T00:01:00Z".parse().unwrap();
        let waiting = |next_at: &str| json!({"data": [{"next_at": next_at}], "next_cursor": null});
        assert_eq!(overdue(&json!({"data": [], "next_cursor": null}), now), None);
        assert_eq!(overdue(&waiting("2030-01-01T00:05:00Z"), now), None);
        assert_eq!(overdue(&waiting("2030-01-01T00:00:55Z"), now), None);
        assert!(overdue(&waiting("2030-01-01T00:00:10Z"), now).unwrap().contains("left alone"));
        let webhooks = json!({"data": [{"id": "a", "active": true}, {"id": "b", "active": true}]});
        let overview = json!({"subscribers": [{"id": "b", "due": true}]});
        let text = render_list(CommandOutput::new(false), &webhooks, &overview);
        assert_eq!(text.lines().filter(|line| line.contains("yes")).count(), 1, "{text}");
    }

    #[test]
    fn only_what_is_given_is_sent() {
        let body = |args: WebhookFieldArgs, url: Option<&str>| args.body(url.map(str::to_owned));
        assert_eq!(body(WebhookFieldArgs::default(), None), json!({}));
        let args = WebhookFieldArgs {
            events: vec!["email.sent".into()],
            active: Some(false),
            form: None,
            description: None,
        };
        let expected = json!({"url": "https://x.example", "events": ["email.sent"], "active": false});
        assert_eq!(body(args, Some("https://x.example")), expected);
    }
}
