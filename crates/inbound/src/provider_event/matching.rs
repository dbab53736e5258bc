//! Finds the messages that events are about: by the provider's id of the mail, and then by our own id. Two
//! reads serve all events of a claim.
//!
//! An event is believed about messages of the hook's tenant that the hook's account sent, and about no
//! others: whoever has the keys of one account must not speak for another. A message that is still being sent
//! has no attempt on record, so its event finds it later.

use std::collections::{HashMap, HashSet};

use postway_domain::{AccountId, MessageUid};
use postway_store::{
    Store, StoreError,
    record::{ProviderEventToProcess, TracedMessage},
};

use super::reading::ReportedEvent;

/// The messages of a set of events.
pub(super) struct EventMatches {
    by_provider_id: HashMap<String, Vec<MessageUid>>,
    senders: HashMap<MessageUid, HashSet<AccountId>>,
    traced: HashMap<MessageUid, TracedMessage>,
}

/// What an event is about.
pub(super) enum MatchedEvent<'m> {
    /// This message.
    Message(&'m TracedMessage),
    /// A message of which only its tombstone is left.
    Removed(MessageUid),
    /// No message yet, and why.
    Nothing(&'static str),
}

impl EventMatches {
    /// Reads what these events may be about.
    pub async fn find<'e>(
        store: &dyn Store,
        events: impl Iterator<Item = (&'e ProviderEventToProcess, &'e ReportedEvent)>,
    ) -> Result<Self, StoreError> {
        let (mut provider_ids, mut uids) = (Vec::new(), Vec::new());
        for (_, reported) in events {
            provider_ids.extend(reported.provider_ids.iter().cloned());
            uids.extend(reported.uid);
        }
        let mut matches =
            Self { by_provider_id: HashMap::new(), senders: HashMap::new(), traced: HashMap::new() };
        if provider_ids.is_empty() && uids.is_empty() {
            return Ok(matches);
        }
        for sent in store.sent_through(&provider_ids, &uids).await? {
            if let Some(id) = sent.provider_message_id {
                matches.by_provider_id.entry(id).or_default().push(sent.uid);
            }
            matches.senders.entry(sent.uid).or_default().insert(sent.account);
            uids.push(sent.uid);
        }
        for traced in store.traced(&uids).await? {
            matches.traced.insert(traced.uid, traced);
        }
        Ok(matches)
    }

    /// What an event is about.
    pub fn of(&self, event: &ProviderEventToProcess, reported: &ReportedEvent) -> MatchedEvent<'_> {
        let named = reported.provider_ids.iter().filter_map(|id| self.by_provider_id.get(id)).flatten();
        let candidates: Vec<MessageUid> = named.copied().chain(reported.uid).collect();
        let mut why = "no message of this account is known by the ids of this event";
        for uid in candidates {
            let Some(traced) = self.traced.get(&uid).filter(|traced| traced.tenant == event.key.tenant)
            else {
                continue;
            };
            if traced.gone {
                return MatchedEvent::Removed(uid);
            }
            if self.senders.get(&uid).is_some_and(|senders| senders.contains(&event.key.account)) {
                return MatchedEvent::Message(traced);
            }
            why = "the message was not sent by this account, or its answer is not known yet";
        }
        MatchedEvent::Nothing(why)
    }
}
