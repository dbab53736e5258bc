//! Many messages in one request. Each is checked alone; those that pass are stored together, or only if all
//! of them pass.
//!
//! The idempotency key of a call covers all its messages: a different call under that key is refused
//! entirely.

use std::sync::Arc;

use aws_lc_rs::digest;
use bytes::Bytes;
use postway_domain::Time;
use postway_store::record::{BatchKey, DedupKind, NewMessage, StoredBody};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    compose::fingerprint,
    context::{AcceptReceipt, RequestContext},
    door::Door,
    look_up::LookupResult,
    parse::{
        defaults::BatchDefaults,
        parse,
        request::{JsonList, JsonObject, JsonText, MessageInput},
    },
    store::{DedupKeys, UNSTORED_TENANT_BYTES_MAX, unstored_bytes},
};
use crate::{budget::FairShare, refusal::Refusal};

/// A request with more messages than this is refused while it is read.
const MESSAGES_READ_MAX: usize = 100_000;
/// Messages are parsed this many at a time: a parsed one can be ten times the size of its text.
const CHUNK_MESSAGES: usize = 50;
/// Messages are composed until they have this many bytes together; then their memory is counted before the
/// next are composed.
const RUN_BYTES_MAX: usize = 8 * 1024 * 1024;
/// The longest part of an id that is shown for a rejected item, in characters.
const ID_CHARS_MAX: usize = 128;

/// The answer to a batch.
#[derive(Clone, Debug)]
pub struct BatchReceipt {
    /// The number of accepted messages.
    pub accepted: usize,
    /// The number of rejected messages.
    pub rejected: usize,
    /// One answer per message, in order.
    pub results: Vec<Result<AcceptReceipt, RejectedItem>>,
}

/// A message of a batch that was rejected.
#[derive(Clone, Debug)]
pub struct RejectedItem {
    /// The client's id of the message, as far as it could be read.
    pub id: Option<String>,
    /// Why it was rejected.
    pub refusal: Refusal,
}

/// How many messages of a batch one refusal stops.
#[derive(Clone, Copy)]
enum BatchExtent {
    /// The refused message only.
    Each,
    /// The batch.
    Whole,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BatchInput<'a> {
    #[serde(borrow, default)]
    defaults: Option<&'a RawValue>,
    #[serde(borrow, default)]
    messages: Option<JsonList<&'a RawValue, MESSAGES_READ_MAX>>,
}

/// The messages to store, and for each item of the batch the answer that is known without storing, if there
/// is one.
struct PreparedBatch {
    messages: Vec<NewMessage>,
    settled: Vec<Option<Result<AcceptReceipt, Refusal>>>,
    /// The memory of the messages, counted until they are stored.
    unstored: FairShare,
}

impl PreparedBatch {
    fn with_capacity(count: usize, unstored: FairShare) -> Self {
        Self { messages: Vec::with_capacity(count), settled: Vec::with_capacity(count), unstored }
    }

    /// Counts the memory of messages that were just composed, or refuses if it is too much.
    fn count(&mut self, made: &[BuiltItem]) -> Result<(), Refusal> {
        let bytes = made.iter().flatten().map(unstored_bytes).sum::<usize>() + self.unstored.amount();
        if bytes > UNSTORED_TENANT_BYTES_MAX {
            let message = format!(
                "the messages of this call take more than {UNSTORED_TENANT_BYTES_MAX} bytes together: send fewer in one call"
            );
            return Err(Refusal::TooLarge { message });
        }
        match self.unstored.grow_to(bytes) {
            true => Ok(()),
            false => Err(Refusal::busy("too many messages wait to be stored at once")),
        }
    }

    /// Gives the messages the call's key, with the digest of everything the call brought.
    fn set_batch_key(&mut self, key: &str, digest: &[u8]) {
        let mut fingerprint = [0; 32];
        fingerprint.copy_from_slice(digest);
        let batch_key = Arc::new(BatchKey { key: key.to_owned(), fingerprint });
        self.messages.iter_mut().for_each(|message| message.batch_key = Some(Arc::clone(&batch_key)));
    }
}

/// A message of a batch, or why it was refused.
type BuiltItem = Result<NewMessage, Box<RefusedItem>>;

struct RefusedItem {
    refusal: Refusal,
    keys: DedupKeys,
    fingerprint: Option<[u8; 32]>,
}

type ParsedItem<'a> = Result<MessageInput<'a>, Refusal>;

impl Door {
    /// Accepts the messages of `{"defaults":{…},"messages":[…]}`. Those that pass are durable when this
    /// returns.
    pub async fn accept_batch(&self, ctx: &RequestContext, body: Bytes) -> Result<BatchReceipt, Refusal> {
        let texts = match self.check_request(ctx, body.len()) {
            Ok(()) => self.heavy.run(&ctx.tenant, body.len(), || self.read_batch(&body)).await.flatten(),
            Err(refusal) => Err(refusal),
        };
        self.accept_many(ctx, texts, BatchExtent::Each).await
    }

    /// Accepts messages that are already separate JSON objects; see [`Door::accept_batch`].
    pub async fn accept_each(
        &self,
        ctx: &RequestContext,
        messages: Vec<Bytes>,
    ) -> Result<BatchReceipt, Refusal> {
        self.accept_many(ctx, self.check_list(ctx, messages), BatchExtent::Each).await
    }

    /// Accepts all of the messages or none. If one does not pass, nothing is stored, and the others are
    /// answered as in a dry run. The messages may not have ids.
    pub async fn accept_all_or_none(
        &self,
        ctx: &RequestContext,
        messages: Vec<Bytes>,
    ) -> Result<BatchReceipt, Refusal> {
        self.accept_many(ctx, self.check_list(ctx, messages), BatchExtent::Whole).await
    }

    async fn accept_many(
        &self,
        ctx: &RequestContext,
        texts: Result<Vec<Bytes>, Refusal>,
        extent: BatchExtent,
    ) -> Result<BatchReceipt, Refusal> {
        let (mut span, ctx) = ctx.begin_accept();
        let taken = match texts {
            Ok(texts) => self.take_batch(&ctx, texts, extent).await,
            Err(refusal) => Err(refusal),
        };
        if let Ok(batch) = &taken {
            batch.results.iter().filter_map(|item| item.as_ref().err()).for_each(|item| item.refusal.count());
        }
        taken.inspect_err(|refusal| refusal.count_in(&mut span))
    }

    async fn take_batch(
        &self,
        ctx: &RequestContext,
        texts: Vec<Bytes>,
        extent: BatchExtent,
    ) -> Result<BatchReceipt, Refusal> {
        let PreparedBatch { messages, settled, unstored: _in_hand } = self.build_batch(ctx, &texts).await?;
        let all_pass = settled.iter().flatten().all(Result::is_ok);
        let stored = match extent {
            _ if messages.is_empty() => Vec::new(),
            BatchExtent::Each => self.store_each(ctx, messages).await?,
            BatchExtent::Whole if all_pass => self.store_whole(ctx, messages).await?,
            BatchExtent::Whole => {
                let rehearsal = RequestContext { dry_run: true, ..ctx.clone() };
                self.store_each(&rehearsal, messages).await?
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

    fn check_list(&self, ctx: &RequestContext, messages: Vec<Bytes>) -> Result<Vec<Bytes>, Refusal> {
        self.check_request(ctx, messages.iter().map(Bytes::len).sum())?;
        self.check_count(messages.len())?;
        Ok(messages)
    }

    fn check_count(&self, messages: usize) -> Result<(), Refusal> {
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

    /// Stores the messages of a call that is accepted as a unit.
    async fn store_whole(
        &self,
        ctx: &RequestContext,
        messages: Vec<NewMessage>,
    ) -> Result<Vec<Result<AcceptReceipt, Refusal>>, Refusal> {
        if let Some(index) = messages.iter().position(|message| message.client_id.is_some()) {
            let field = format!("messages[{index}].id");
            return Err(Refusal::field(field, "messages that are accepted all or none may not have ids"));
        }
        self.store_all_or_none(ctx, messages).await
    }

    /// Checks and composes each message alone.
    async fn build_batch(&self, ctx: &RequestContext, texts: &[Bytes]) -> Result<PreparedBatch, Refusal> {
        let now = self.clock.now();
        let unstored = self.writer.unstored_share(&ctx.tenant);
        let mut prepared = PreparedBatch::with_capacity(texts.len(), unstored);
        let mut batch_digest = ctx.idempotency_key.as_ref().map(|_| digest::Context::new(&digest::SHA256));
        for chunk in texts.chunks(CHUNK_MESSAGES) {
            let first = prepared.settled.len();
            if first > 0 {
                // Many light chunks are heavy together: let other tasks run in between.
                tokio::task::yield_now().await;
            }
            let bytes = chunk.iter().map(Bytes::len).sum();
            let read = || chunk.iter().map(|text| read_item(text)).collect();
            let items: Vec<ParsedItem<'_>> = self.heavy.run(&ctx.tenant, bytes, read).await?;
            let looked_up = self.look_up_all(ctx, &items).await?;
            let weights = items
                .iter()
                .zip(&looked_up)
                .filter_map(|(item, looked_up)| Some(looked_up.as_ref()?.weight(item.as_ref().ok()?, bytes)));
            let heaviest = weights.max();
            let mut parts = items.into_iter().zip(looked_up).zip(chunk).enumerate();
            let mut chunk_built: Vec<BuiltItem> = Vec::with_capacity(chunk.len());
            while chunk_built.len() < chunk.len() {
                let run = || {
                    let parts = parts.by_ref().map(|(at, part)| self.build_item(ctx, first + at, part, now));
                    collect_run(parts)
                };
                let made = self.heavy.run(&ctx.tenant, heaviest.unwrap_or(bytes), run).await?;
                prepared.count(&made)?;
                chunk_built.extend(made);
            }
            for (made, text) in chunk_built.into_iter().zip(chunk) {
                let fingerprint = match &made {
                    Ok(message) => Some(message.fingerprint),
                    Err(refused) => refused.fingerprint,
                };
                if let Some(batch_digest) = &mut batch_digest {
                    match &fingerprint {
                        Some(fingerprint) => batch_digest.update(fingerprint),
                        None => batch_digest.update(digest::digest(&digest::SHA256, text).as_ref()),
                    }
                }
                prepared.settled.push(match made {
                    Ok(message) => {
                        prepared.messages.push(message);
                        None
                    }
                    Err(refused) => match *refused {
                        RefusedItem { refusal, keys, fingerprint: Some(fingerprint) } => {
                            match self.writer.repeat_or_refusal(ctx, keys, || Ok(fingerprint), refusal).await
                            {
                                Err(refusal) if refusal.is_transient() => return Err(refusal),
                                known => Some(known),
                            }
                        }
                        RefusedItem { refusal, fingerprint: None, .. } => Some(Err(refusal)),
                    },
                });
            }
        }
        if let (Some(batch_digest), Some(key)) = (batch_digest, &ctx.idempotency_key) {
            prepared.set_batch_key(key, batch_digest.finish().as_ref());
        }
        Ok(prepared)
    }

    fn build_item(
        &self,
        ctx: &RequestContext,
        index: usize,
        ((item, looked_up), text): ((ParsedItem<'_>, Option<LookupResult>), &Bytes),
        now: Time,
    ) -> BuiltItem {
        let unread =
            |refusal| Box::new(RefusedItem { refusal, keys: DedupKeys::default(), fingerprint: None });
        let request = item.map_err(unread)?;
        let key = ctx.idempotency_key.as_ref();
        let key = key.map(|key| (DedupKind::BatchItem, format!("{index}:{key}")));
        let looked_up = looked_up.ok_or_else(|| unread(missing_answer()))?;
        let made = self.build_message(ctx, &request, &looked_up, key.clone(), text.clone(), now);
        let made = made.map(|mut message| {
            // A dry run does not store the message, so its bytes can go.
            if ctx.dry_run {
                message.content.raw = StoredBody::Inline(Bytes::new());
            }
            message
        });
        made.map_err(|refusal| {
            let keys = DedupKeys::new(key, request.id.as_deref());
            let is_keyed = !keys.is_empty();
            let fingerprint = is_keyed.then(|| fingerprint(&request, &[]).ok()).flatten();
            Box::new(RefusedItem { refusal, keys, fingerprint })
        })
    }

    /// The JSON text of each message, merged with the defaults.
    fn read_batch(&self, body: &Bytes) -> Result<Vec<Bytes>, Refusal> {
        let JsonObject(batch) = parse::<JsonObject<BatchInput<'_>>>(body)?;
        let messages = batch.messages.map_or_else(Vec::new, |messages| messages.0);
        self.check_count(messages.len())?;
        let defaults = batch.defaults.map(BatchDefaults::read).transpose()?.unwrap_or_default();
        if defaults.len() * messages.len() > self.limits.request_bytes_max {
            let message = "the defaults, repeated for each message, are larger than a request may be \
                           (http.max_request_bytes): shorten them or send fewer messages";
            return Err(Refusal::TooLarge { message: message.to_owned() });
        }
        let texts = messages.into_iter().map(|message| match defaults.merge_under(message) {
            Some(merged) => Bytes::from(merged),
            None => body.slice_ref(message.get().as_bytes()),
        });
        Ok(texts.collect())
    }

    /// Looks up what each message refers to; `None` for a message that could not be read.
    async fn look_up_all(
        &self,
        ctx: &RequestContext,
        items: &[ParsedItem<'_>],
    ) -> Result<Vec<Option<LookupResult>>, Refusal> {
        let mut looked_up = Vec::with_capacity(items.len());
        for item in items {
            looked_up.push(match item {
                Ok(request) => Some(self.lookup.look_up_new(ctx, request).await?),
                Err(_) => None,
            });
        }
        Ok(looked_up)
    }
}

/// Collects the next messages until they have enough bytes together.
fn collect_run(made: impl Iterator<Item = BuiltItem>) -> Vec<BuiltItem> {
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

fn read_item(text: &[u8]) -> ParsedItem<'_> {
    parse::<JsonObject<MessageInput<'_>>>(text).map(|object| object.0)
}

fn missing_answer() -> Refusal {
    postway_store::StoreError::Unexpected("it did not answer for every message".to_owned()).into()
}

/// The id of a rejected message, by which its sender recognises it.
fn id_of(message: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct ItemId<'a> {
        #[serde(borrow, default)]
        id: Option<JsonText<'a>>,
    }

    let JsonObject(ItemId { id }) = serde_json::from_slice(message).ok()?;
    Some(id?.chars().take(ID_CHARS_MAX).collect())
}
