//! Whether the secret key opens the stored secrets: a backup that was restored without its key must not be
//! noticed only when a login fails.

use std::sync::atomic::{AtomicUsize, Ordering};

use postway_domain::{
    DkimKey, Subscriber, WatchedMailbox,
    egress::ProxySetting,
    secret::{SealedSecret, SecretKey},
};
use postway_store::{Store, StoreError};

/// How many stored secrets do not open. The check writes it; `/health/ready` reads it.
#[derive(Debug, Default)]
pub struct UnopenedSecrets(AtomicUsize);

impl UnopenedSecrets {
    /// Whether any secret does not open.
    pub fn is_any(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }

    /// Opens the secrets of accounts, mailboxes, webhooks and signing keys, remembers how many do not open,
    /// and returns those by the purposes they were sealed for.
    pub async fn check(&self, store: &dyn Store, key: &SecretKey) -> Result<Vec<String>, StoreError> {
        let mut unopened = Vec::new();
        let mut look = |place: String, sealed: Option<&SealedSecret>| {
            if sealed.is_some_and(|sealed| key.open(&place, sealed).is_err()) {
                unopened.push(place);
            }
        };
        for account in store.accounts(None).await? {
            look(account.current_sealing_context(), account.secret.as_ref());
            let proxy = account.settings.proxy.as_ref().and_then(|proxy| proxy.password.as_ref());
            look(ProxySetting::account_context(&account.tenant, &account.id), proxy);
        }
        for mailbox in store.mailboxes(None).await? {
            look(WatchedMailbox::sealing_context(&mailbox.tenant, &mailbox.id), mailbox.secret.as_ref());
        }
        for webhook in store.subscribers(None).await? {
            look(Subscriber::sealing_context(&webhook.tenant, &webhook.id), webhook.secrets.as_ref());
        }
        for one in store.dkim_keys(None, None).await? {
            look(DkimKey::sealing_context(&one.tenant, &one.domain, &one.selector), Some(&one.private));
        }
        self.0.store(unopened.len(), Ordering::Relaxed);
        Ok(unopened)
    }
}
