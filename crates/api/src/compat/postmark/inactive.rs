//! Recipients that are suppressed, told with the answer as Postmark's users expect it.
//!
//! This only tells early: whoever is suppressed gets nothing, because the store looks when a message is claimed. So it may be
//! a second old, and a tenant whose list is empty, as most are, costs no look at all for that long.

use std::{
    collections::HashMap,
    sync::{PoisonError, RwLock},
    time::{Duration, Instant},
};

use postway_domain::{Mailbox, TenantId};
use postway_store::StoreError;

use super::{error::Fault, message::Translated};
use crate::{http::error::ApiError, state::App};

/// How long a list that was empty is believed to be.
const BELIEVED_FOR: Duration = Duration::from_secs(1);
/// More tenants than this are not remembered.
const TENANTS_MAX: usize = 10_000;

/// Tenants whose list was empty a moment ago.
#[derive(Default)]
pub(super) struct EmptyLists(RwLock<HashMap<TenantId, Instant>>);

impl EmptyLists {
    /// Which recipients of a message are inactive; where they all are, the error that there is for that.
    pub(super) async fn inactive(
        &self,
        app: &App,
        tenant: &TenantId,
        message: &Translated,
    ) -> Result<Result<Vec<String>, ApiError>, StoreError> {
        if self.is_empty(app, tenant).await? {
            return Ok(Ok(Vec::new()));
        }
        let now = app.clock.now();
        let (mut inactive, mut count) = (Vec::new(), 0);
        for recipient in message.recipients() {
            count += 1;
            // What is no address is the intake's to refuse.
            let Ok(mailbox) = recipient.parse::<Mailbox>() else { continue };
            let address = mailbox.address().as_str().to_lowercase();
            let suppressed = app.store.suppression(tenant, &address).await?;
            if suppressed.is_some_and(|suppressed| suppressed.expires_at.is_none_or(|until| until > now)) {
                inactive.push(address);
            }
        }
        match inactive.len() {
            suppressed if suppressed == count && count > 0 => Ok(Err(all_inactive(&inactive))),
            _ => Ok(Ok(inactive)),
        }
    }

    async fn is_empty(&self, app: &App, tenant: &TenantId) -> Result<bool, StoreError> {
        let seen = self.0.read().unwrap_or_else(PoisonError::into_inner).get(tenant).copied();
        if seen.is_some_and(|seen| seen.elapsed() < BELIEVED_FOR) {
            return Ok(true);
        }
        let is_empty = app.store.suppressions(tenant, None, 1).await?.is_empty();
        let mut lists = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if is_empty {
            if lists.len() >= TENANTS_MAX {
                lists.clear();
            }
            lists.insert(tenant.clone(), Instant::now());
        } else {
            lists.remove(tenant);
        }
        Ok(is_empty)
    }
}

/// Why an address is inactive, in the words that clients look for behind the addresses.
const WHO_IS: &str = "Inactive recipients are ones that have generated a hard bounce, a spam complaint, or a manual suppression.";

/// The refusal of a mail that nobody would get. Clients read the addresses out of these sentences: some want them on a line of
/// their own, some followed by the next sentence, so the answer has both forms.
fn all_inactive(addresses: &[String]) -> ApiError {
    let addresses = addresses.join(", ");
    let message = format!(
        "You tried to send to recipient(s) that have been marked as inactive.\nFound inactive addresses: {addresses}.\n{WHO_IS}\n\
         Found inactive addresses: {addresses}. Inactive recipients get no mail."
    );
    Fault::Inactive.error("", message)
}

/// What is said of a mail that goes to the others.
pub(super) fn some_inactive(addresses: &[String]) -> String {
    let addresses = addresses.join(", ");
    format!("Message OK, but will not deliver to these inactive addresses: {addresses}. {WHO_IS}")
}
