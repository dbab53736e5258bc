//! A receiver of webhooks: it answers as the test says, and checks the notifications against what the gateway
//! promises.

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use anyhow::{Context, ensure};
use aws_lc_rs::hmac;
use base64::{Engine, prelude::BASE64_STANDARD};
use postway_testkit::{HttpSource, SourceReply, http_source::ReceivedRequest};
use serde_json::{Value, json};

use crate::{Client, text};

/// The path of its URL.
const PATH: &str = "/hook";

/// A webhook's receiver, with a port of its own.
pub struct Receiver {
    source: HttpSource,
    /// The webhook's id.
    pub id: String,
    secret: String,
}

/// One call to it.
#[derive(Clone, Debug)]
pub struct Call {
    /// Its `webhook-id`.
    pub id: String,
    /// Its body.
    pub body: Value,
    /// Where it belongs in a trace, if it says so.
    pub traceparent: Option<String>,
}

impl Call {
    /// The type of its event.
    pub fn kind(&self) -> &str {
        text(&self.body, "type")
    }

    /// The client's id of the message.
    pub fn message(&self) -> &str {
        text(&self.body["data"], "id")
    }

    /// The event's position in the message's history.
    pub fn sequence(&self) -> Option<i64> {
        self.body["sequence"].as_i64()
    }
}

impl Receiver {
    /// Makes a webhook for all events; its receiver answers each call in turn with one of these, and then
    /// with the last.
    pub async fn subscribe(gateway: &Client, replies: Vec<SourceReply>) -> anyhow::Result<Self> {
        let source = HttpSource::start().await;
        source.serve_in_turn(PATH, replies);
        let made = gateway.post("/v1/webhooks", json!({"url": source.url(PATH), "events": ["*"]})).await?;
        let (id, secret) = (text(&made, "id").to_owned(), text(&made, "secret").to_owned());
        Ok(Self { source, id, secret })
    }

    /// From now on, it answers with this.
    pub fn answer(&self, reply: SourceReply) {
        self.source.serve(PATH, reply);
    }

    /// How often it was called.
    pub fn count(&self) -> usize {
        self.source.requests().len()
    }

    /// Waits until it was called `count` times. Panics if it is not.
    pub async fn wait_for(&self, count: usize, within: Duration) {
        self.source.wait_for(count, within).await;
    }

    /// All calls so far, in the order in which they came. Fails if one is not signed with the webhook's
    /// secret.
    pub fn calls(&self) -> anyhow::Result<Vec<Call>> {
        let key = self.secret.strip_prefix("whsec_").context("the secret has another form")?;
        let key = hmac::Key::new(hmac::HMAC_SHA256, &BASE64_STANDARD.decode(key)?);
        self.source.requests().iter().map(|request| read(request, &key)).collect()
    }

    /// The calls of each message in the order of their first arrival, repeats left out. Fails if one
    /// message's came out of order, if a repeat differs, or if one event came under two ids.
    pub fn told(&self) -> anyhow::Result<BTreeMap<String, Vec<Call>>> {
        let mut told: BTreeMap<String, Vec<Call>> = BTreeMap::new();
        let mut first: HashMap<String, Call> = HashMap::new();
        for call in self.calls()? {
            let names = |call: &Call| (call.message().to_owned(), call.sequence(), call.kind().to_owned());
            match first.get(&call.id) {
                Some(earlier) => ensure!(names(earlier) == names(&call), "{earlier:?} became {call:?}"),
                None => {
                    let of_message = told.entry(call.message().to_owned()).or_default();
                    let is_next = of_message.last().is_none_or(|last| last.sequence() < call.sequence());
                    ensure!(is_next, "{call:?} came after {of_message:#?}");
                    first.insert(call.id.clone(), call.clone());
                    of_message.push(call);
                }
            }
        }
        Ok(told)
    }
}

fn read(request: &ReceivedRequest, key: &hmac::Key) -> anyhow::Result<Call> {
    let header = |name: &str| request.header(name).with_context(|| format!("a call without {name}"));
    let (id, timestamp) = (header("webhook-id")?, header("webhook-timestamp")?);
    let signed = [format!("{id}.{timestamp}.").as_bytes(), &request.body].concat();
    let signature = header("webhook-signature")?.strip_prefix("v1,").context("not a v1 signature")?;
    let is_ours = hmac::verify(key, &signed, &BASE64_STANDARD.decode(signature)?);
    ensure!(is_ours.is_ok(), "the signature of {id} does not verify");
    let traceparent = request.header("traceparent").map(str::to_owned);
    Ok(Call { id: id.to_owned(), body: serde_json::from_slice(&request.body)?, traceparent })
}
