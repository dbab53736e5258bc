//! Suppressed recipients, reported with the answer as Postmark's users expect.
//!
//! This is only an early notice: a suppressed recipient gets nothing anyway, because the store checks when a
//! message is claimed. So it may be a second old, and a tenant with an empty list, as most have, costs no
//! lookup for that long.

use std::{
    collections::HashMap,
    sync::{PoisonError, RwLock},
    time::{Duration, Instant},
};

use postway_domain::{NamedAddress, TenantId};
use postway_store::StoreError;

use super::{error::PostmarkFault, message::TranslatedMessage};
use crate::{http::error::ApiError, state::AppState};

/// How long a list is trusted to be empty.
const BELIEVED_FOR: Duration = Duration::from_secs(1);
/// The most tenants that are remembered.
const TENANTS_MAX: usize = 10_000;

/// Tenants whose suppression list was empty a moment ago.
#[derive(Default)]
pub(super) struct EmptySuppressionLists(RwLock<HashMap<TenantId, Instant>>);

impl EmptySuppressionLists {
    /// The inactive recipients of a message; if all are inactive, the error for that.
    pub(super) async fn inactive(
        &self,
        app: &AppState,
        tenant: &TenantId,
        message: &TranslatedMessage,
    ) -> Result<Result<Vec<String>, ApiError>, StoreError> {
        if self.is_empty(app, tenant).await? {
            return Ok(Ok(Vec::new()));
        }
        let now = app.clock.now();
        let (mut inactive, mut count) = (Vec::new(), 0);
        for recipient in message.recipients() {
            count += 1;
            // A malformed address is refused by the intake.
            let Ok(mailbox) = recipient.parse::<NamedAddress>() else { continue };
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

    async fn is_empty(&self, app: &AppState, tenant: &TenantId) -> Result<bool, StoreError> {
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

/// The refusal of a mail without active recipients. Clients parse the addresses out of these sentences: some
/// expect them on a line of their own, some followed by the next sentence, so the answer has both forms.
fn all_inactive(addresses: &[String]) -> ApiError {
    let addresses = addresses.join(", ");
    let message = format!(
        "You tried to send to recipient(s) that have been marked as inactive.\nFound inactive addresses: {addresses}.\n{WHO_IS}\n\
         Found inactive addresses: {addresses}. Inactive recipients get no mail."
    );
    PostmarkFault::Inactive.error("", message)
}

/// The notice for a mail that is sent to the other recipients.
pub(super) fn some_inactive(addresses: &[String]) -> String {
    let addresses = addresses.join(", ");
    format!("Message OK, but will not deliver to these inactive addresses: {addresses}. {WHO_IS}")
}
