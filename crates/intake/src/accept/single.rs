//! One message as a JSON object: the plain way through the pipeline. Batches share its middle part.

use bytes::Bytes;
use postway_domain::Time;
use postway_store::record::{DedupKind, NewMessage};

use super::{
    check::check,
    compose::{MessageOrigin, assemble, fingerprint},
    context::{AcceptReceipt, RequestContext},
    door::Door,
    look_up::LookupResult,
    parse::{
        parse,
        request::{JsonObject, MessageInput},
    },
    store::DedupKeys,
};
use crate::{budget::catch_panic, refusal::Refusal};

impl Door {
    /// Accepts one message, given as a JSON object. It is durable when this returns.
    pub async fn accept_json(&self, ctx: &RequestContext, body: Bytes) -> Result<AcceptReceipt, Refusal> {
        let (mut span, ctx) = ctx.begin_accept();
        let taken = self.take_json(&ctx, body).await;
        taken.inspect_err(|refusal| refusal.count_in(&mut span))
    }

    async fn take_json(&self, ctx: &RequestContext, body: Bytes) -> Result<AcceptReceipt, Refusal> {
        self.check_request(ctx, body.len())?;
        let message = {
            let read = || parse::<JsonObject<MessageInput<'_>>>(&body);
            let JsonObject(request) = self.heavy.run(&ctx.tenant, body.len(), read).await??;
            let key = ctx.idempotency_key.clone().map(|key| (DedupKind::Request, key));
            match self.look_up_and_build(ctx, &request, key.clone(), &body).await {
                Ok(message) => message,
                Err(refusal) => {
                    let keys = DedupKeys::new(key, request.id.as_deref());
                    return self
                        .writer
                        .repeat_or_refusal(ctx, keys, || fingerprint(&request, &[]), refusal)
                        .await;
                }
            }
        };
        self.store_one(ctx, message).await
    }

    /// Looks up what the request refers to, and builds the message.
    async fn look_up_and_build(
        &self,
        ctx: &RequestContext,
        request: &MessageInput<'_>,
        key: Option<(DedupKind, String)>,
        body: &Bytes,
    ) -> Result<NewMessage, Refusal> {
        let now = self.clock.now();
        let looked_up = self.lookup.look_up_new(ctx, request).await?;
        if ctx.dry_run {
            self.dry_run(ctx, request, &looked_up, body.len(), now).await?;
        }
        let weight = looked_up.weight(request, body.len());
        let build = || self.build_message(ctx, request, &looked_up, key, body.clone(), now);
        self.heavy.run(&ctx.tenant, weight, build).await?
    }

    /// Everything between looking up and storing: pure work on one message.
    pub(super) fn build_message(
        &self,
        ctx: &RequestContext,
        request: &MessageInput<'_>,
        looked_up: &LookupResult,
        idempotency: Option<(DedupKind, String)>,
        payload: Bytes,
        now: Time,
    ) -> Result<NewMessage, Refusal> {
        catch_panic(&ctx.tenant, &ctx.request_id, || {
            let limits = self.limits.for_tenant(&looked_up.profile.settings.content);
            let uid = self.builder.new_uid(now);
            let mut checked = check(request, looked_up, &limits, (uid, now))?;
            let keyed = idempotency.is_some() || checked.terms.client_id.is_some();
            let fingerprint = if keyed { fingerprint(request, &[])? } else { [0; 32] };
            let mail = self.builder.build(&mut checked, looked_up, payload.len(), (uid, now))?;
            let (tenant, request_id) = (&ctx.tenant, ctx.request_id.as_str());
            let on_doubt = ctx.on_doubt_for(&checked.account, &looked_up.profile);
            let origin =
                MessageOrigin { tenant, request_id, idempotency, fingerprint, payload, on_doubt, now };
            assemble(origin, checked.terms, &checked.account, mail, limits.message_bytes_max)
        })
    }
}
