//! Many messages in one request: each is checked alone, all that pass are stored together, or only if all of them pass.
//!
//! A call under an idempotency key is known by all its messages: any other call under that key is refused as a whole.

use std::sync::Arc;

use aws_lc_rs::digest;
use bytes::Bytes;
use postway_domain::Time;
use postway_store::record::{BatchKey, Body, DedupKind, NewMessage};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    compose::fingerprint,
    context::{Receipt, RequestContext},
    door::Door,
    look_up::Surroundings,
    parse::{
        defaults::Defaults,
        parse,
        request::{List, MessageRequest, Object, Text},
    },
    store::{Keys, UNSTORED_TENANT_BYTES_MAX, unstored_bytes},
};
use crate::{budget::FairShare, refusal::Refusal};

/// More messages than this are not even read.
const MESSAGES_READ_MAX: usize = 100_000;
/// Messages are parsed this many at a time: a parsed one can be ten times the size of its text.
const CHUNK_MESSAGES: usize = 50;
/// Messages are composed until they have so many bytes together; then they are counted before the next are.
const RUN_BYTES_MAX: usize = 8 * 1024 * 1024;
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

/// What is to be stored, and for every place the answer that is known without storing, if it is.
struct Prepared {
    messages: Vec<NewMessage>,
    settled: Vec<Option<Result<Receipt, Refusal>>>,
    /// What the messages take, counted until they are stored.
    in_hand: FairShare,
}

impl Prepared {
    fn with_capacity(count: usize, in_hand: FairShare) -> Self {
        Self { messages: Vec::with_capacity(count), settled: Vec::with_capacity(count), in_hand }
    }

    /// Counts what the messages take that were composed just now, unless that is too much.
    fn count(&mut self, made: &[Made]) -> Result<(), Refusal> {
        let bytes = made.iter().flatten().map(unstored_bytes).sum::<usize>() + self.in_hand.amount();
        if bytes > UNSTORED_TENANT_BYTES_MAX {
            let message = format!(
                "the messages of this call take more than {UNSTORED_TENANT_BYTES_MAX} bytes together: send fewer in one call"
            );
            return Err(Refusal::TooLarge { message });
        }
        match self.in_hand.grow_to(bytes) {
            true => Ok(()),
            false => Err(Refusal::busy("too many messages wait to be stored at once")),
        }
    }

    /// Has the messages known by the call's key, and by all that came with them.
    fn under_key(&mut self, key: &str, digest: &[u8]) {
        let mut fingerprint = [0; 32];
        fingerprint.copy_from_slice(digest);
        let whole = Arc::new(BatchKey { key: key.to_owned(), fingerprint });
        self.messages.iter_mut().for_each(|message| message.batch_key = Some(Arc::clone(&whole)));
    }
}

/// A message of a batch, or why there is none and what it would be known by.
type Made = Result<NewMessage, Refused>;

struct Refused {
    refusal: Refusal,
    keys: Keys,
    fingerprint: Option<[u8; 32]>,
}

type Item<'a> = Result<MessageRequest<'a>, Refusal>;

impl Door {
    /// Takes the messages of `{"defaults":{…},"messages":[…]}`: those that pass are durable when this returns.
    pub async fn accept_batch(&self, ctx: &RequestContext, body: Bytes) -> Result<BatchReceipt, Refusal> {
        let texts = match self.check_request(ctx, body.len()) {
            Ok(()) => self.heavy.run(&ctx.tenant, body.len(), || self.read_batch(&body)).await.flatten(),
            Err(refusal) => Err(refusal),
        };
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
    /// run. The messages have no ids of their own.
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
        let Prepared { messages, settled, in_hand: _in_hand } = self.prepare_batch(ctx, &texts).await?;
        let all_pass = settled.iter().flatten().all(Result::is_ok);
        let stored = match extent {
            _ if messages.is_empty() => Vec::new(),
            Extent::Each => self.writer.store_all(ctx, messages).await?,
            Extent::Whole if all_pass => self.store_whole(ctx, messages).await?,
            Extent::Whole => {
                let rehearsal = RequestContext { dry_run: true, ..ctx.clone() };
                self.writer.store_all(&rehearsal, messages).await?
            }
        };
        let mut stored = stored.into_iter();
        let mut results = Vec::with_capacity(settled.len());
        for (settled, text) in settled.into_iter().zip(&texts) {
            let result = match settled {
                Some(result) => result,
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

    /// Stores messages that are taken as a whole.
    async fn store_whole(
        &self,
        ctx: &RequestContext,
        messages: Vec<NewMessage>,
    ) -> Result<Vec<Result<Receipt, Refusal>>, Refusal> {
        if let Some(place) = messages.iter().position(|message| message.client_id.is_some()) {
            let field = format!("messages[{place}].id");
            return Err(Refusal::field(field, "messages that are taken as a whole have no ids"));
        }
        self.writer.store_all(ctx, messages).await
    }

    /// Checks and composes each message alone.
    async fn prepare_batch(&self, ctx: &RequestContext, texts: &[Bytes]) -> Result<Prepared, Refusal> {
        let now = self.clock.now();
        let in_hand = self.writer.unstored_share(&ctx.tenant);
        let mut prepared = Prepared::with_capacity(texts.len(), in_hand);
        let mut whole = ctx.idempotency_key.as_ref().map(|_| digest::Context::new(&digest::SHA256));
        for chunk in texts.chunks(CHUNK_MESSAGES) {
            let first = prepared.settled.len();
            if first > 0 {
                // Many light chunks are heavy too: others get their turn in between.
                tokio::task::yield_now().await;
            }
            let bytes = chunk.iter().map(Bytes::len).sum();
            let read = || chunk.iter().map(|text| read_item(text)).collect();
            let items: Vec<Item<'_>> = self.heavy.run(&ctx.tenant, bytes, read).await?;
            let around = self.look_around(ctx, &items).await?;
            let weights = items.iter().zip(&around).filter_map(|(item, around)| {
                let bounds = &around.as_ref()?.house.settings.content;
                Some(item.as_ref().ok()?.weight(bounds, bytes))
            });
            let heaviest = weights.max();
            let mut parts = items.into_iter().zip(around).zip(chunk).enumerate();
            let mut chunk_made: Vec<Made> = Vec::with_capacity(chunk.len());
            while chunk_made.len() < chunk.len() {
                let run = || {
                    let parts = parts.by_ref().map(|(at, part)| self.make_item(ctx, first + at, part, now));
                    take_run(parts)
                };
                let made = self.heavy.run(&ctx.tenant, heaviest.unwrap_or(bytes), run).await?;
                prepared.count(&made)?;
                chunk_made.extend(made);
            }
            for (made, text) in chunk_made.into_iter().zip(chunk) {
                let fingerprint = match &made {
                    Ok(message) => Some(message.fingerprint),
                    Err(refused) => refused.fingerprint,
                };
                if let Some(whole) = &mut whole {
                    match &fingerprint {
                        Some(fingerprint) => whole.update(fingerprint),
                        None => whole.update(digest::digest(&digest::SHA256, text).as_ref()),
                    }
                }
                prepared.settled.push(match made {
                    Ok(message) => {
                        prepared.messages.push(message);
                        None
                    }
                    Err(Refused { refusal, keys, fingerprint: Some(fingerprint) }) => {
                        match self.writer.repeat_or_refusal(ctx, keys, || Ok(fingerprint), refusal).await {
                            Err(refusal) if refusal.is_transient() => return Err(refusal),
                            known => Some(known),
                        }
                    }
                    Err(Refused { refusal, fingerprint: None, .. }) => Some(Err(refusal)),
                });
            }
        }
        if let (Some(whole), Some(key)) = (whole, &ctx.idempotency_key) {
            prepared.under_key(key, whole.finish().as_ref());
        }
        Ok(prepared)
    }

    fn make_item(
        &self,
        ctx: &RequestContext,
        place: usize,
        ((item, around), text): ((Item<'_>, Option<Surroundings>), &Bytes),
        now: Time,
    ) -> Made {
        let unread = |refusal| Refused { refusal, keys: Keys::default(), fingerprint: None };
        let request = item.map_err(unread)?;
        let key = ctx.idempotency_key.as_ref();
        let key = key.map(|key| (DedupKind::BatchItem, format!("{place}:{key}")));
        let around = around.ok_or_else(|| unread(missing_answer()))?;
        let made = self.build_message(ctx, &request, &around, key.clone(), text.clone(), now);
        let made = made.map(|mut message| {
            // What is only tried is not stored, and its bytes are of no use any more.
            if ctx.dry_run {
                message.content.raw = Body::Inline(Bytes::new());
            }
            message
        });
        made.map_err(|refusal| {
            let keys = Keys::new(key, request.id.as_deref());
            let is_keyed = !keys.is_empty();
            let fingerprint = is_keyed.then(|| fingerprint(&request, &[]).ok()).flatten();
            Refused { refusal, keys, fingerprint }
        })
    }

    /// The JSON text of each message, with the defaults merged under it.
    fn read_batch(&self, body: &Bytes) -> Result<Vec<Bytes>, Refusal> {
        let Object(batch) = parse::<Object<BatchRequest<'_>>>(body)?;
        let messages = batch.messages.map_or_else(Vec::new, |messages| messages.0);
        self.check_number(messages.len())?;
        let defaults = batch.defaults.map(Defaults::read).transpose()?.unwrap_or_default();
        if defaults.len() * messages.len() > self.limits.request_bytes_max {
            let message = "the defaults, repeated for each message, are larger than a request may be \
                           (http.max_request_bytes): shorten them or send fewer messages";
            return Err(Refusal::TooLarge { message: message.to_owned() });
        }
        let texts = messages.into_iter().map(|message| match defaults.under(message) {
            Some(merged) => Bytes::from(merged),
            None => body.slice_ref(message.get().as_bytes()),
        });
        Ok(texts.collect())
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
                Ok(request) => Some(self.lookup.look_up_new(ctx, request).await?),
                Err(_) => None,
            });
        }
        Ok(around)
    }
}

/// The next messages, until they have enough bytes together.
fn take_run(made: impl Iterator<Item = Made>) -> Vec<Made> {
    let (mut run, mut bytes) = (Vec::new(), 0);
    for one in made {
        bytes += one.as_ref().map_or(0, unstored_bytes);
        run.push(one);
        if bytes > RUN_BYTES_MAX {
            break;
        }
    }
    run
}

fn read_item(text: &[u8]) -> Item<'_> {
    parse::<Object<MessageRequest<'_>>>(text).map(|object| object.0)
}

fn missing_answer() -> Refusal {
    postway_store::StoreError::Unexpected("it did not answer for every message".to_owned()).into()
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
