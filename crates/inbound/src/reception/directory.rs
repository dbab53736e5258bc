//! Which recipients are known, and which mailbox their mail belongs to.
//!
//! Mailboxes name their addresses in three forms: `desk@example.com` (with any `+detail`), `*@example.com`
//! (everybody), and `@bounces.example.com`, the domain of envelope senders that we signed. Of the last, an
//! address is known only if its signature holds for a message of the mailbox's tenant: a stranger cannot guess
//! one. Such an address is never taken as an ordinary one of `*@…`.
//!
//! The list of mailboxes is read again after two seconds, so that a new address is known soon on every node.

use std::{collections::HashMap, sync::Arc, time::Duration};

use postway_domain::{
    EmailAddress, WatchedMailbox,
    verp::{VerpAddress, VerpKey},
};
use postway_store::{Store, StoreError};
use tokio::{sync::Mutex, time::Instant};

/// How long the list is trusted.
const LIST_LASTS: Duration = Duration::from_secs(2);

/// What is known of a recipient.
#[derive(Debug)]
pub(super) enum RecipientJudgement {
    /// The mail belongs to this mailbox.
    Known(Box<WatchedMailbox>),
    /// The mailbox takes no mail now.
    Paused,
    /// Nobody has this address.
    Unknown,
}

type AddressList = Arc<HashMap<String, WatchedMailbox>>;

/// The known addresses.
pub(super) struct ReceptionDirectory {
    store: Arc<dyn Store>,
    verp_key: VerpKey,
    list: Mutex<Option<(Instant, AddressList)>>,
}

impl ReceptionDirectory {
    pub(super) fn new(store: Arc<dyn Store>, verp_key: VerpKey) -> Self {
        Self { store, verp_key, list: Mutex::new(None) }
    }

    /// Finds the mailbox of a recipient.
    pub(super) async fn judge(&self, to: &EmailAddress) -> Result<RecipientJudgement, StoreError> {
        let list = self.list().await?;
        let address = to.as_str().to_lowercase();
        let Some((local, domain)) = address.rsplit_once('@') else { return Ok(RecipientJudgement::Unknown) };
        let exact = list.get(&address);
        let signed = VerpAddress::read(&address);
        let found = match (exact, &signed) {
            (Some(mailbox), _) => Some(mailbox),
            (None, Some(signed)) => match list.get(&format!("@{domain}")) {
                Some(mailbox) if self.is_ours(signed, mailbox).await? => Some(mailbox),
                Some(_) | None => None,
            },
            (None, None) => {
                let bare = local.split_once('+').map(|(bare, _)| format!("{bare}@{domain}"));
                bare.and_then(|bare| list.get(&bare)).or_else(|| list.get(&format!("*@{domain}")))
            }
        };
        Ok(match found {
            None => RecipientJudgement::Unknown,
            Some(mailbox) if !mailbox.settings.active => RecipientJudgement::Paused,
            Some(mailbox) => RecipientJudgement::Known(Box::new(mailbox.clone())),
        })
    }

    /// Whether we signed this envelope sender, for a message that the mailbox may hear of.
    async fn is_ours(&self, signed: &VerpAddress, mailbox: &WatchedMailbox) -> Result<bool, StoreError> {
        let traced = self.store.traced(&[signed.uid()]).await?;
        let Some(message) = traced.first() else { return Ok(false) };
        let may_hear = mailbox.settings.all_tenants || message.tenant == mailbox.tenant;
        Ok(may_hear && signed.scope(&self.verp_key, &message.recipients).is_some())
    }

    async fn list(&self) -> Result<AddressList, StoreError> {
        let mut held = self.list.lock().await;
        if let Some((at, list)) = &*held
            && at.elapsed() < LIST_LASTS
        {
            return Ok(list.clone());
        }
        let mut addresses = HashMap::new();
        for mailbox in self.store.mailboxes(None).await? {
            for address in &mailbox.settings.addresses {
                // The API lets nobody take an address twice; if two administrators did so at once, the first
                // mailbox by name has it, on every node.
                addresses.entry(address.to_lowercase()).or_insert_with(|| mailbox.clone());
            }
        }
        let list = Arc::new(addresses);
        *held = Some((Instant::now(), list.clone()));
        Ok(list)
    }
}
