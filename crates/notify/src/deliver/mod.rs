//! Telling a batch of notifications to their subscriber, in its form.
//!
//! Whatever happens, every notification of the batch gets exactly one verdict, a panic in between included.

pub(crate) mod callback;
pub(crate) mod client_sync;
mod http_call;
mod payload;
mod resend_form;
mod webhook;

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::FutureExt;
use postway_domain::{Clock, Event, EventKind, SubscriberKind, secret::SecretKey};
use postway_net::http::HttpClient;
use postway_store::{Store, StoreError, blob::Depot, record::Call};

pub use self::webhook::{Tested, call_test};
use crate::{
    notification::{
        message_state::{self as standing, Standing},
        outcome::{Conduct, Leased, Told, Verdict},
    },
    scheduler::Batch,
};

/// How long a subscriber is left alone when the store could not say what to tell it.
pub(crate) const STORE_AWAY: Duration = Duration::from_secs(1);

/// How old a message may be that is told.
const STANDING_LASTS: Duration = Duration::from_secs(2);

/// What calls need.
pub(crate) struct Means {
    /// Where everything is.
    pub store: Arc<dyn Store>,
    /// Where large mails are.
    pub depot: Arc<Depot>,
    /// The guarded way out.
    pub http: HttpClient,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// What opens secrets.
    pub secret_key: Arc<SecretKey>,
    /// No call takes longer, whatever its form allows.
    pub patience: Duration,
}

/// Tells a batch.
pub(crate) async fn tell(means: &Means, batch: &Batch) -> Told {
    let telling = async {
        match &batch.target.reach {
            Err(reason) => Ok(unreachable_at(means, batch, reason)),
            Ok(reach) => match batch.target.kind() {
                SubscriberKind::Webhook | SubscriberKind::ResendWebhook => {
                    webhook::tell(means, batch, reach).await
                }
                SubscriberKind::Callback => callback::tell(means, batch, reach).await,
                SubscriberKind::Sync => client_sync::tell(means, batch, reach).await,
            },
        }
    };
    let now = || means.clock.now();
    match AssertUnwindSafe(telling).catch_unwind().await {
        Ok(Ok(told)) => told,
        Ok(Err(error)) => {
            tracing::warn!(%error, tenant = %batch.key.tenant, "what to tell a subscriber could not be read");
            let back = |leased: &Leased| verdict(means, leased, Verdict::GivenBack, None);
            let notified = batch.leased.iter().map(back).collect();
            Told::uncalled(notified, Some(now().plus(STORE_AWAY)))
        }
        Err(_) => {
            tracing::error!(tenant = %batch.key.tenant, "telling a subscriber panicked; it is tried again later");
            unreachable_at(means, batch, "this could not be told: see the log for the time")
        }
    }
}

/// Calls that cannot be made fail like others, so that the log tells why.
fn unreachable_at(means: &Means, batch: &Batch, reason: &str) -> Told {
    let unmade = || Some(http_call::unmade(means.clock.now(), reason));
    let fail = |leased: &Leased| verdict(means, leased, Verdict::Failed { asked: None }, unmade());
    let notified = batch.leased.iter().map(fail).collect();
    Told { notified, conduct: Conduct::Failed, quiet_until: None, comes_again: false }
}

/// A verdict of which the message's history does not tell.
pub(crate) fn verdict(
    means: &Means,
    leased: &Leased,
    verdict: Verdict,
    call: Option<Call>,
) -> postway_store::record::Notified {
    leased.notified(verdict, call, false, means.clock.now(), &mut rand::rng())
}

/// What is to be said of a notification whose message is not there. Mail that came in never was one, and means nothing to
/// clients that are told of their messages.
pub(crate) fn without_message(leased: &Leased) -> Verdict {
    match &leased.job.event {
        Some(event) if event.kind == EventKind::Received => Verdict::Pointless,
        _ => Verdict::Gone,
    }
}

/// The message of a notification, and what happened to it; `None` where it is gone. What was read with the lease counts for
/// as long as [`STANDING_LASTS`]; a subscriber so slow that it is older costs a read of its own.
pub(crate) async fn look_up<'l>(
    means: &Means,
    leased: &'l Leased,
) -> Result<Option<(Arc<Standing>, &'l Event)>, StoreError> {
    let key = &leased.job.key;
    let Some(event) = &leased.job.event else { return Ok(None) };
    let now = means.clock.now();
    if let Some((standing, read_at)) = &leased.standing
        && now.since(*read_at) < STANDING_LASTS
    {
        return Ok(Some((standing.clone(), event)));
    }
    let standing = standing::read_one(&*means.store, &key.tenant, key.uid, now).await?;
    Ok(standing.map(|standing| (Arc::new(standing), event)))
}
