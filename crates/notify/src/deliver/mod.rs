//! Delivers a batch of notifications to a subscriber, in the form that the subscriber expects.
//!
//! Every notification of a batch gets exactly one verdict, even if delivering it panics.

mod call_span;
mod callback;
mod client_sync;
mod context;
mod http_call;
mod payload;
mod postmark_form;
mod received_mail;
mod resend_form;
mod webhook;

use std::panic::AssertUnwindSafe;

use futures::FutureExt;
use postway_domain::SubscriberKind;

pub(crate) use self::context::DeliveryContext;
use self::context::{STORE_AWAY, verdict};
pub use self::{
    received_mail::{
        RECEIVED_FILE_BYTES_MAX, RECEIVED_HEADER_BYTES_MAX, RECEIVED_TEXT_BYTES_MAX, ReceivedFile,
        ReceivedMail, ReceivedMailReader, ReceivedPerson,
    },
    webhook::{WebhookTestResult, call_test},
};
use crate::notification::{
    batch::NotificationBatch,
    outcome::{BatchOutcome, LeasedNotification, NotificationVerdict, SubscriberConduct},
};

/// Delivers a batch.
pub(crate) async fn deliver(context: &DeliveryContext, batch: &NotificationBatch) -> BatchOutcome {
    let telling = async {
        match &batch.target.access {
            Err(reason) => Ok(unreachable_at(context, batch, reason)),
            Ok(access) => match batch.target.kind() {
                SubscriberKind::Webhook | SubscriberKind::ResendWebhook | SubscriberKind::PostmarkWebhook => {
                    webhook::deliver(context, batch, access).await
                }
                SubscriberKind::Callback => callback::deliver(context, batch, access).await,
                SubscriberKind::Sync => client_sync::deliver(context, batch, access).await,
                // It has no URL, so it has no access either.
                SubscriberKind::Archive => Ok(unreachable_at(context, batch, "an archive takes no calls")),
            },
        }
    };
    let now = || context.clock.now();
    match AssertUnwindSafe(telling).catch_unwind().await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(error)) => {
            tracing::warn!(%error, tenant = %batch.key.tenant, "the messages of notifications could not be read");
            let back =
                |leased: &LeasedNotification| verdict(context, leased, NotificationVerdict::GivenBack, None);
            let notified = batch.leased.iter().map(back).collect();
            BatchOutcome::uncalled(notified, Some(now().plus(STORE_AWAY)))
        }
        Err(_) => {
            tracing::error!(tenant = %batch.key.tenant, "delivering to a subscriber panicked; it is tried again later");
            unreachable_at(context, batch, "this could not be delivered: see the log for the time")
        }
    }
}

/// Fails all notifications of a batch that cannot be called, so that the log says why.
fn unreachable_at(context: &DeliveryContext, batch: &NotificationBatch, reason: &str) -> BatchOutcome {
    let call_not_made = || Some(http_call::call_not_made(context.clock.now(), reason));
    let fail = |leased: &LeasedNotification| {
        verdict(context, leased, NotificationVerdict::Failed { asked: None }, call_not_made())
    };
    let notified = batch.leased.iter().map(fail).collect();
    BatchOutcome { notified, conduct: SubscriberConduct::Failed, quiet_until: None, comes_again: false }
}
