//! What every form of delivery needs: the store, the HTTP client, and the state of the messages that it
//! reports on.

use std::{sync::Arc, time::Duration};

use postway_domain::{Clock, MessageEvent, secret::SecretKey};
use postway_net::http::HttpClient;
use postway_store::{Store, StoreError, blob::BlobStorage, record::NotificationCall};

use super::received_mail::ReceivedMailReader;
use crate::notification::{
    message_state::{self, MessageSnapshot},
    outcome::{LeasedNotification, NotificationVerdict},
};

/// How long a subscriber is left alone after the store could not read its messages.
pub(crate) const STORE_AWAY: Duration = Duration::from_secs(1);

/// How old the snapshot of a message may be when it is delivered.
const SNAPSHOT_LASTS: Duration = Duration::from_secs(2);

/// The dependencies of all calls.
pub(crate) struct DeliveryContext {
    /// The store.
    pub store: Arc<dyn Store>,
    /// The blobs of large mails.
    pub depot: Arc<BlobStorage>,
    /// The HTTP client, which refuses forbidden addresses.
    pub http: HttpClient,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Opens stored secrets.
    pub secret_key: Arc<SecretKey>,
    /// The longest call, whatever its form allows.
    pub patience: Duration,
    /// Reads received mail.
    pub received: ReceivedMailReader,
    /// Where receivers reach this gateway, for links.
    pub public_url: Option<String>,
}

/// The outcome of a notification that the message's history does not record.
pub(crate) fn verdict(
    context: &DeliveryContext,
    leased: &LeasedNotification,
    verdict: NotificationVerdict,
    call: Option<NotificationCall>,
) -> postway_store::record::NotificationResult {
    leased.notified(verdict, call, false, context.clock.now(), &mut rand::rng())
}

/// The verdict on a notification whose message does not exist. Inbound mail and changes of suppressions never
/// were messages, and mean nothing to clients that follow their messages.
pub(crate) fn verdict_without_message(leased: &LeasedNotification) -> NotificationVerdict {
    match &leased.job.event {
        Some(event) if !event.kind.is_of_message() => NotificationVerdict::Pointless,
        _ => NotificationVerdict::Gone,
    }
}

/// Reads the message of a notification and its event; `None` if the message is gone. The snapshot read with
/// the lease is used for [`SNAPSHOT_LASTS`]; after that, as with a slow subscriber, the message is read
/// again.
pub(crate) async fn read_message<'l>(
    context: &DeliveryContext,
    leased: &'l LeasedNotification,
) -> Result<Option<(Arc<MessageSnapshot>, &'l MessageEvent)>, StoreError> {
    let key = &leased.job.key;
    let Some(event) = &leased.job.event else { return Ok(None) };
    let now = context.clock.now();
    if let Some((snapshot, read_at)) = &leased.snapshot
        && now.since(*read_at) < SNAPSHOT_LASTS
    {
        return Ok(Some((snapshot.clone(), event)));
    }
    let snapshot = message_state::read_one(&*context.store, &key.tenant, key.uid, now).await?;
    Ok(snapshot.map(|snapshot| (Arc::new(snapshot), event)))
}
