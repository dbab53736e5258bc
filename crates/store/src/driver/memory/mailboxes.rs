//! Watched mailboxes, rules, contacts.

use std::collections::{BTreeMap, BTreeSet};

use postway_domain::{
    Contact, InboundRule, InboundState, MessageEvent, MessageUid, TenantId, Time, WatchedMailbox,
    id::{ContactId, MailboxId, RuleId},
    mailbox::MailboxSettings,
    oauth::OAuthOwner,
};

use super::{admin::done_if, inbound_mail::StoredMail, tables::MemoryTables};
use crate::{
    inbound::place_of,
    record::{BlobName, ChangeResult, MailboxKey, MailboxNote, MailboxState, StoredBody, StoredReceipt},
};

/// Everything about mail that comes in.
#[derive(Default)]
pub(super) struct InboundTables {
    pub mailboxes: BTreeMap<MailboxKey, (WatchedMailbox, MailboxState)>,
    rules: BTreeMap<(TenantId, RuleId), InboundRule>,
    contacts: BTreeMap<(TenantId, ContactId), Contact>,
    pub mails: BTreeMap<MessageUid, StoredMail>,
    /// What each mailbox has had.
    pub seen: BTreeSet<(MailboxKey, [u8; 32])>,
    /// By message and digest, with their bytes.
    pub receipts: BTreeMap<(MessageUid, [u8; 32]), (StoredReceipt, StoredBody)>,
    /// Until when a first receipt must have come.
    pub waiting: BTreeMap<MessageUid, Time>,
}

fn key_of(mailbox: &WatchedMailbox) -> MailboxKey {
    MailboxKey { tenant: mailbox.tenant.clone(), mailbox: mailbox.id.clone() }
}

fn unread(key: MailboxKey) -> MailboxState {
    MailboxState { key, cursor: None, uid_next: None, scanned_at: None, error: None, error_since: None }
}

impl InboundTables {
    /// Whether another mailbox is where this one is, at the same port.
    fn is_place_taken(&self, mailbox: &WatchedMailbox) -> bool {
        let place = |settings: &MailboxSettings| (place_of(settings), settings.port);
        let mut others = self.mailboxes.values().map(|(other, _)| other);
        others.any(|other| {
            other.tenant == mailbox.tenant
                && other.id != mailbox.id
                && place(&other.settings) == place(&mailbox.settings)
        })
    }

    pub fn create_mailbox(&mut self, mailbox: WatchedMailbox) -> ChangeResult {
        let key = key_of(&mailbox);
        let is_free = !self.mailboxes.contains_key(&key) && !self.is_place_taken(&mailbox);
        if is_free {
            self.mailboxes.insert(key.clone(), (mailbox, unread(key)));
        }
        done_if(is_free, ChangeResult::Exists)
    }

    pub fn update_mailbox(&mut self, mailbox: WatchedMailbox, expected: i64) -> ChangeResult {
        if self.is_place_taken(&mailbox) {
            return ChangeResult::Exists;
        }
        let key = key_of(&mailbox);
        match self.mailboxes.get_mut(&key) {
            Some((stored, state)) if stored.version == expected => {
                if place_of(&stored.settings) != place_of(&mailbox.settings) {
                    *state = unread(key);
                }
                *stored = WatchedMailbox { created_at: stored.created_at, ..mailbox };
                ChangeResult::Done
            }
            Some(_) | None => ChangeResult::Stale,
        }
    }

    pub fn note(&mut self, note: MailboxNote) {
        let Some((_, state)) = self.mailboxes.get_mut(&note.key) else { return };
        state.uid_next = note.uid_next.or(state.uid_next);
        match note.error {
            None => {
                state.scanned_at = Some(note.at);
                (state.error, state.error_since) = (None, None);
            }
            Some(error) => {
                state.error = Some(error);
                state.error_since.get_or_insert(note.at);
            }
        }
    }

    pub fn create_rule(&mut self, rule: InboundRule) -> ChangeResult {
        if !self.has_mailbox(&rule) {
            return ChangeResult::Missing;
        }
        let place = (rule.tenant.clone(), rule.id.clone());
        let is_free = !self.rules.contains_key(&place);
        if is_free {
            self.hasten(&rule);
        }
        self.rules.entry(place).or_insert(rule);
        done_if(is_free, ChangeResult::Exists)
    }

    pub fn update_rule(&mut self, rule: InboundRule, expected: i64) -> ChangeResult {
        if !self.has_mailbox(&rule) {
            return ChangeResult::Missing;
        }
        let is_current = |stored: &InboundRule| stored.version == expected;
        if self.rules.get(&(rule.tenant.clone(), rule.id.clone())).is_some_and(is_current) {
            self.hasten(&rule);
        }
        match self.rules.get_mut(&(rule.tenant.clone(), rule.id.clone())) {
            Some(stored) if stored.version == expected => {
                *stored = InboundRule { created_at: stored.created_at, ..rule };
                ChangeResult::Done
            }
            Some(_) | None => ChangeResult::Stale,
        }
    }

    /// Mail that waits for its mailbox to have a rule need not wait any longer; what failed waits on.
    fn hasten(&mut self, rule: &InboundRule) {
        let waits = self.mails.values_mut().map(|mail| &mut mail.view).filter(|view| {
            (&view.key.tenant, &view.key.mailbox) == (&rule.tenant, &rule.mailbox)
                && (view.state, view.tries) == (InboundState::Waiting, 0)
        });
        for view in waits.filter(|_| rule.active) {
            view.due_at = view.due_at.map(|due_at| due_at.min(rule.updated_at));
        }
    }

    fn has_mailbox(&self, rule: &InboundRule) -> bool {
        let key = MailboxKey { tenant: rule.tenant.clone(), mailbox: rule.mailbox.clone() };
        self.mailboxes.contains_key(&key)
    }

    pub fn delete_rule(&mut self, tenant: TenantId, id: RuleId) -> ChangeResult {
        done_if(self.rules.remove(&(tenant, id)).is_some(), ChangeResult::Missing)
    }

    pub fn rule(&self, tenant: &TenantId, id: &RuleId) -> Option<InboundRule> {
        self.rules.get(&(tenant.clone(), id.clone())).cloned()
    }

    pub fn list_rules(&self, tenant: &TenantId, mailbox: Option<&MailboxId>) -> Vec<InboundRule> {
        let of_tenant = self.rules.values().filter(|rule| rule.tenant == *tenant);
        let wanted = of_tenant.filter(|rule| mailbox.is_none_or(|mailbox| rule.mailbox == *mailbox));
        let mut rules: Vec<InboundRule> = wanted.cloned().collect();
        rules.sort_by(|a, b| (&a.mailbox, a.position, &a.id).cmp(&(&b.mailbox, b.position, &b.id)));
        rules
    }

    pub fn create_contact(&mut self, contact: Contact) -> ChangeResult {
        let place = (contact.tenant.clone(), contact.id.clone());
        let is_taken = self.contact_named(&contact.tenant, &contact.name).is_some();
        let is_free = !is_taken && !self.contacts.contains_key(&place);
        if is_free {
            self.contacts.insert(place, contact);
        }
        done_if(is_free, ChangeResult::Exists)
    }

    pub fn update_contact(&mut self, contact: Contact, expected: i64) -> ChangeResult {
        let named = self.contact_named(&contact.tenant, &contact.name);
        if named.is_some_and(|other| other.id != contact.id) {
            return ChangeResult::Exists;
        }
        match self.contacts.get_mut(&(contact.tenant.clone(), contact.id.clone())) {
            Some(stored) if stored.version == expected => {
                *stored = Contact { created_at: stored.created_at, ..contact };
                ChangeResult::Done
            }
            Some(_) | None => ChangeResult::Stale,
        }
    }

    pub fn delete_contact(&mut self, tenant: TenantId, id: ContactId) -> ChangeResult {
        done_if(self.contacts.remove(&(tenant, id)).is_some(), ChangeResult::Missing)
    }

    pub fn contact(&self, tenant: &TenantId, id: &ContactId) -> Option<Contact> {
        self.contacts.get(&(tenant.clone(), id.clone())).cloned()
    }

    pub fn contact_named(&self, tenant: &TenantId, name: &str) -> Option<Contact> {
        let key = Contact::key(name);
        let of_tenant = self.contacts.values().filter(|contact| contact.tenant == *tenant);
        of_tenant.into_iter().find(|contact| Contact::key(&contact.name) == key).cloned()
    }

    pub fn list_contacts(&self, tenant: &TenantId, after: Option<&ContactId>, limit: u32) -> Vec<Contact> {
        let of_tenant = self.contacts.values().filter(|contact| contact.tenant == *tenant);
        let later = of_tenant.filter(|contact| after.is_none_or(|after| contact.id > *after));
        later.take(limit as usize).cloned().collect()
    }

    /// The history of a mail.
    pub fn events(&self, uid: MessageUid) -> Option<&Vec<MessageEvent>> {
        self.mails.get(&uid).map(|mail| &mail.events)
    }

    pub fn refers_to(&self, name: &BlobName) -> bool {
        let mails = self.mails.values().filter_map(|mail| mail.body.as_ref());
        let mut bodies = mails.chain(self.receipts.values().map(|(_, body)| body));
        bodies.any(|body| matches!(body, StoredBody::Blob(blob) if blob.name == *name))
    }

    pub fn forget_message(&mut self, uid: MessageUid) {
        self.receipts.retain(|(of, _), _| *of != uid);
        self.waiting.remove(&uid);
    }

    pub fn forget_tenant(&mut self, tenant: &TenantId) {
        self.mailboxes.retain(|key, _| key.tenant != *tenant);
        self.rules.retain(|(of, _), _| of != tenant);
        self.contacts.retain(|(of, _), _| of != tenant);
        self.mails.retain(|_, mail| mail.view.key.tenant != *tenant);
        self.seen.retain(|(key, _)| key.tenant != *tenant);
    }
}

impl MemoryTables {
    /// A tenant's mailboxes, of all that are not deleted where none is named.
    pub fn mailboxes_of(
        &self,
        tenant: Option<&TenantId>,
    ) -> impl Iterator<Item = &(WatchedMailbox, MailboxState)> {
        let wanted = move |key: &MailboxKey| match tenant {
            Some(tenant) => key.tenant == *tenant,
            None => self.is_served(key),
        };
        self.inbound.mailboxes.iter().filter(move |(key, _)| wanted(key)).map(|(_, mailbox)| mailbox)
    }

    pub fn delete_mailbox(&mut self, key: &MailboxKey) -> ChangeResult {
        if self.inbound.mailboxes.remove(key).is_none() {
            return ChangeResult::Missing;
        }
        self.directory.oauth.remove(&OAuthOwner::mailbox(&key.tenant, &key.mailbox));
        self.inbound.rules.retain(|_, rule| rule.tenant != key.tenant || rule.mailbox != key.mailbox);
        self.inbound.seen.retain(|(of, _)| of != key);
        let of_mailbox = self.inbound.mails.values().filter(|mail| mail.view.key == *key);
        let uids: Vec<MessageUid> = of_mailbox.map(|mail| mail.view.uid).collect();
        uids.into_iter().for_each(|uid| self.remove_mail(uid));
        ChangeResult::Done
    }
}
