//! Many messages in one request: each is checked alone, all that pass are stored together, or only if all of them pass.
//!
//! `defaults` stand under each message: the message's own fields win, and `headers` and `metadata` are merged one level
//! deep. Merging works on the JSON text of the fields, which are neither parsed nor copied for it more than once.

use std::{borrow::Cow, collections::HashSet};

use aws_lc_rs::digest;
use bytes::Bytes;

use serde::Deserialize;
use serde_json::value::RawValue;

use postway_store::record::{DedupKind, NewMessage};

use crate::{
    door::{Door, Receipt, RequestContext},
    parse::parse,
    refusal::Refusal,
    request::{Entries, List, MessageRequest, Object, Text},
    surroundings::{Settled, Surroundings},
    work::weighed,
};

/// More messages than this are not even read.
const MESSAGES_READ_MAX: usize = 100_000;
/// More fields of an object than this are not even read.
const FIELDS_READ_MAX: usize = 10_000;
/// Messages are parsed this many at a time: a parsed one can be ten times the size of its text.
const CHUNK_MESSAGES: usize = 50;
/// The longest id that a rejected item is named by.
const ID_CHARS_MAX: usize = 128;

/// What became of a batch.
#[derive(Clone, Debug)]
pub struct BatchReceipt {
    /// How many were taken.
    pub accepted: usize,
    /// How many were not.
    pub rejected: usize,
    /// One answer per message, in order.
    pub results: Vec<Result<Receipt, RejectedItem>>,
}

/// A message of a batch that was not taken.
#[derive(Clone, Debug)]
pub struct RejectedItem {
    /// The client's id of it, as far as it could be read.
    pub id: Option<String>,
    /// Why not.
    pub refusal: Refusal,
}

/// How much of a batch one refusal stops.
#[derive(Clone, Copy)]
enum Extent {
    /// The message alone.
    Each,
    /// All of them.
    Whole,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BatchRequest<'a> {
    #[serde(borrow, default)]
    defaults: Option<&'a RawValue>,
    #[serde(borrow, default)]
    messages: Option<List<&'a RawValue, MESSAGES_READ_MAX>>,
}

type Fields<'a> = Entries<'a, &'a RawValue, FIELDS_READ_MAX>;
type Item<'a> = Result<MessageRequest<'a>, Refusal>;

impl Door {
    /// Takes the messages of `{"defaults":{…},"messages":[…]}`: those that pass are durable when this returns.
    pub async fn accept_batch(&self, ctx: &RequestContext, body: Bytes) -> Result<BatchReceipt, Refusal> {
        let read = || weighed(body.len(), || self.read_batch(&body));
        let texts = self.check_request(ctx, body.len()).and_then(|()| read());
        self.accept_many(ctx, texts, Extent::Each).await
    }

    /// The same of messages that are apart already, each a JSON object.
    pub async fn accept_each(
        &self,
        ctx: &RequestContext,
        messages: Vec<Bytes>,
    ) -> Result<BatchReceipt, Refusal> {
        self.accept_many(ctx, self.check_apart(ctx, messages), Extent::Each).await
    }

    /// The same for all of them or none: where one does not pass, nothing is stored, and the others are answered as in a dry
    /// run. The messages have no ids of their own. A batch under an idempotency key is known by all its messages: any other
    /// batch under that key is refused as a whole.
    pub async fn accept_whole(
        &self,
        ctx: &RequestContext,
        messages: Vec<Bytes>,
    ) -> Result<BatchReceipt, Refusal> {
        self.accept_many(ctx, self.check_apart(ctx, messages), Extent::Whole).await
    }

    async fn accept_many(
        &self,
        ctx: &RequestContext,
        texts: Result<Vec<Bytes>, Refusal>,
        extent: Extent,
    ) -> Result<BatchReceipt, Refusal> {
        let taken = match texts {
            Ok(texts) => self.take_batch(ctx, texts, extent).await,
            Err(refusal) => Err(refusal),
        };
        if let Ok(batch) = &taken {
            batch.results.iter().filter_map(|item| item.as_ref().err()).for_each(|item| item.refusal.count());
        }
        taken.inspect_err(Refusal::count)
    }

    async fn take_batch(
        &self,
        ctx: &RequestContext,
        texts: Vec<Bytes>,
        extent: Extent,
    ) -> Result<BatchReceipt, Refusal> {
        let (messages, refusals) = self.prepare_batch(ctx, &texts).await?;
        let all_pass = refusals.iter().all(Option::is_none);
        let stored = match extent {
            _ if messages.is_empty() => Vec::new(),
            Extent::Each => self.store_all(ctx, messages).await?,
            Extent::Whole if all_pass => self.store_whole(ctx, messages).await?,
            Extent::Whole => {
                let rehearsal = RequestContext { dry_run: true, ..ctx.clone() };
                self.store_all(&rehearsal, messages).await?
            }
        };
        let mut stored = stored.into_iter();
        let mut results = Vec::with_capacity(refusals.len());
        for (refusal, text) in refusals.into_iter().zip(&texts) {
            let result = match refusal {
                Some(refusal) => Err(refusal),
                None => stored.next().unwrap_or_else(|| Err(missing_answer())),
            };
            results.push(result.map_err(|refusal| RejectedItem { id: id_of(text), refusal }));
        }
        let accepted = results.iter().filter(|result| result.is_ok()).count();
        Ok(BatchReceipt { accepted, rejected: results.len() - accepted, results })
    }

    fn check_apart(&self, ctx: &RequestContext, messages: Vec<Bytes>) -> Result<Vec<Bytes>, Refusal> {
        self.check_request(ctx, messages.iter().map(Bytes::len).sum())?;
        self.check_number(messages.len())?;
        Ok(messages)
    }

    fn check_number(&self, messages: usize) -> Result<(), Refusal> {
        let max = self.limits.batch_messages_max;
        if messages == 0 {
            return Err(Refusal::field("messages", "give at least one message"));
        }
        if messages > max {
            let message = format!("there are {messages} messages: send at most {max} in one request");
            return Err(Refusal::field("messages", message));
        }
        Ok(())
    }

    /// Stores a batch that is known as a whole, in one call. All follow the first: whichever other batch came under the key
    /// has a first message too, and where the two meet the second is refused with all that came with it.
    async fn store_whole(
        &self,
        ctx: &RequestContext,
        mut messages: Vec<NewMessage>,
    ) -> Result<Vec<Result<Receipt, Refusal>>, Refusal> {
        if let Some(place) = messages.iter().position(|message| message.client_id.is_some()) {
            let field = format!("messages[{place}].id");
            return Err(Refusal::field(field, "messages that are taken as a whole have no ids"));
        }
        if ctx.idempotency_key.is_some() {
            let mut hash = digest::Context::new(&digest::SHA256);
            messages.iter().for_each(|message| hash.update(&message.fingerprint));
            let whole = hash.finish();
            messages.iter_mut().for_each(|message| message.fingerprint.copy_from_slice(whole.as_ref()));
            let leader = messages.first().map(|message| message.uid);
            messages.iter_mut().skip(1).for_each(|message| message.follows = leader);
        }
        let stored = self.store_all(ctx, messages).await?;
        match stored.first() {
            Some(Err(refusal)) => Err(refusal.clone()),
            _ => Ok(stored),
        }
    }

    /// Checks and composes each message alone: those that pass, and for every place the refusal, if there is one.
    async fn prepare_batch(
        &self,
        ctx: &RequestContext,
        texts: &[Bytes],
    ) -> Result<(Vec<NewMessage>, Vec<Option<Refusal>>), Refusal> {
        let now = self.clock.now();
        let mut messages = Vec::with_capacity(texts.len());
        let mut refusals = Vec::with_capacity(texts.len());
        for chunk in texts.chunks(CHUNK_MESSAGES) {
            if !refusals.is_empty() {
                // Many light chunks are heavy too: others get their turn in between.
                tokio::task::yield_now().await;
            }
            let bytes = chunk.iter().map(Bytes::len).sum();
            let items: Vec<Item<'_>> = weighed(bytes, || chunk.iter().map(|text| read_item(text)).collect());
            let around = self.look_around(ctx, &items).await?;
            weighed(bytes, || {
                for ((item, around), text) in items.into_iter().zip(&around).zip(chunk) {
                    let prepared = item.and_then(|request| {
                        let key = ctx.idempotency_key.as_ref();
                        let key = key.map(|key| (DedupKind::BatchItem, format!("{}:{key}", refusals.len())));
                        let around = around.as_ref().ok_or_else(missing_answer)?;
                        self.prepare(ctx, &request, around, key, text.clone(), now)
                    });
                    refusals.push(prepared.map(|message| messages.push(message)).err());
                }
            });
        }
        Ok((messages, refusals))
    }

    /// The JSON text of each message, with the defaults merged under it.
    fn read_batch(&self, body: &Bytes) -> Result<Vec<Bytes>, Refusal> {
        let Object(batch) = parse::<Object<BatchRequest<'_>>>(body)?;
        let messages = batch.messages.map_or_else(Vec::new, |messages| messages.0);
        self.check_number(messages.len())?;
        let defaults = batch.defaults.map(read_defaults).transpose()?.unwrap_or(Entries(Vec::new()));
        if defaults.0.is_empty() {
            return Ok(messages
                .into_iter()
                .map(|message| body.slice_ref(message.get().as_bytes()))
                .collect());
        }
        let bytes: usize =
            defaults.0.iter().map(|(_, value)| value.get().len()).sum::<usize>() * messages.len();
        if bytes > self.limits.request_bytes_max {
            let message = "the defaults, repeated for each message, are larger than a request may be \
                           (request_bytes_max): shorten them or send fewer messages";
            return Err(Refusal::TooLarge { message: message.to_owned() });
        }
        let merged = messages.into_iter().map(|message| match merge(&defaults, message) {
            Some(merged) => Bytes::from(merged),
            // What is no object is left for the parser to refuse.
            None => body.slice_ref(message.get().as_bytes()),
        });
        Ok(merged.collect())
    }

    /// Looks up what the messages refer to; nothing for what cannot be read.
    async fn look_around(
        &self,
        ctx: &RequestContext,
        items: &[Item<'_>],
    ) -> Result<Vec<Option<Surroundings>>, Refusal> {
        let mut around = Vec::with_capacity(items.len());
        for item in items {
            around.push(match item {
                Ok(request) => {
                    let account = request.account.as_deref();
                    Some(self.surroundings(&ctx.tenant, request, account, Settled::default()).await?)
                }
                Err(_) => None,
            });
        }
        Ok(around)
    }
}

fn read_item(text: &[u8]) -> Item<'_> {
    parse::<Object<MessageRequest<'_>>>(text).map(|object| object.0)
}

fn missing_answer() -> Refusal {
    postway_store::StoreError::Unexpected("it did not answer for every message".to_owned()).into()
}

/// Checks the shape of the defaults once, so that their faults are not found in every message.
fn read_defaults(defaults: &RawValue) -> Result<Fields<'_>, Refusal> {
    let json = defaults.get().as_bytes();
    let inside = |refusal: Refusal| refusal.inside("defaults");
    let Object(request) = parse::<Object<MessageRequest<'_>>>(json).map_err(inside)?;
    if request.id.is_some() {
        return Err(Refusal::field("defaults.id", "an id names one message: give it in the message"));
    }
    parse(json).map_err(inside)
}

/// One message over the defaults, as JSON text, if it is an object.
fn merge<'a>(defaults: &Fields<'a>, message: &'a RawValue) -> Option<String> {
    let own = serde_json::from_str::<Fields<'_>>(message.get()).ok()?;
    let find = |fields: &Fields<'a>, name: &str| {
        fields.0.iter().find(|(other, _)| **other == *name).map(|(_, value)| *value)
    };
    let kept = defaults.0.iter().filter(|(name, _)| find(&own, name).is_none());
    let kept = kept.map(|(name, value)| (&**name, Cow::Borrowed(value.get())));
    let own_fields = own.0.iter().map(|(name, value)| {
        let nests = matches!(&**name, "headers" | "metadata");
        let default = nests.then(|| find(defaults, name)).flatten();
        let merged = default.and_then(|default| merge_nested(default, value, &**name == "headers"));
        (&**name, merged.map_or(Cow::Borrowed(value.get()), Cow::Owned))
    });
    Some(write_object(kept.chain(own_fields)))
}

/// Two objects as one, if both are objects; the second wins. Header names are compared without case.
fn merge_nested(default: &RawValue, own: &RawValue, without_case: bool) -> Option<String> {
    let default: Fields<'_> = serde_json::from_str(default.get()).ok()?;
    let own: Fields<'_> = serde_json::from_str(own.get()).ok()?;
    let folded = |name: &str| {
        if without_case { name.to_ascii_lowercase() } else { name.to_owned() }
    };
    let taken: HashSet<String> = own.0.iter().map(|(name, _)| folded(name)).collect();
    let kept = default.0.iter().filter(|(name, _)| !taken.contains(&folded(name)));
    Some(write_object(kept.chain(&own.0).map(|(name, value)| (&**name, Cow::Borrowed(value.get())))))
}

/// An object of these fields, whose values are JSON already.
pub(crate) fn write_object<'a>(fields: impl Iterator<Item = (&'a str, Cow<'a, str>)>) -> String {
    let mut json = String::from("{");
    for (name, value) in fields {
        if json.len() > 1 {
            json.push(',');
        }
        json.push_str(&serde_json::Value::from(name).to_string());
        json.push(':');
        json.push_str(&value);
    }
    json.push('}');
    json
}

/// The id of a rejected message, for its sender to know it by.
fn id_of(message: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Named<'a> {
        #[serde(borrow, default)]
        id: Option<Text<'a>>,
    }

    let Object(Named { id }) = serde_json::from_slice(message).ok()?;
    Some(id?.chars().take(ID_CHARS_MAX).collect())
}
