//! The senders and recipients that a tenant or a key allows.
//!
//! A tenant's `allowed_senders` apply to all its mail. A key's `allowed_senders` and `allowed_recipients`
//! apply to mail that is submitted with that key. The check compares what the mail says: `From`, `Sender`,
//! the envelope sender that it asks for, and `Reply-To` if the tenant wants that. An envelope sender that
//! comes from the account or the tenant is not the sender's choice and is not compared.

use postway_domain::{EmailAddress, TenantSettings, address_pattern::AddressPattern, key::KeyRestrictions};
use postway_mime::reader::{HeaderBlock, addresses};

use crate::refusal::{FieldFault, FieldFaults, RefusalCode};

/// The most addresses of one field that are compared; a field with more is refused.
const ADDRESSES_MAX: usize = 100;

/// The restrictions on the sender of a mail.
#[derive(Clone, Copy)]
pub(crate) struct SenderBounds<'a> {
    pub tenant: &'a TenantSettings,
    pub key: Option<&'a KeyRestrictions>,
}

impl SenderBounds<'_> {
    /// Whether the senders are restricted at all.
    fn binds_senders(&self) -> bool {
        !self.tenant.allowed_senders.is_empty() || self.key.is_some_and(|key| !key.senders.is_empty())
    }

    /// Adds a fault for `field` if its address may not send.
    pub(crate) fn check_sender(&self, field: &str, address: &str, errors: &mut FieldFaults) {
        let by_key = self.key.map_or(&[][..], |key| &key.senders);
        let who = match (
            AddressPattern::allow(&self.tenant.allowed_senders, address),
            AddressPattern::allow(by_key, address),
        ) {
            (true, true) => return,
            (false, _) => "tenant",
            (true, false) => "key",
        };
        let message = format!("is no address that this {who} may send from (its allowed_senders)");
        errors.note(FieldFault::new(field, message).coded(RefusalCode::SenderNotAllowed));
    }

    /// Checks an address of Reply-To, which is restricted only if the tenant wants that.
    pub(crate) fn check_reply_to(&self, field: &str, address: &str, errors: &mut FieldFaults) {
        if self.tenant.bind_reply_to {
            self.check_sender(field, address, errors);
        }
    }

    /// Adds a fault for each recipient that this key may not send to.
    pub(crate) fn check_recipients<'r>(
        &self,
        recipients: impl Iterator<Item = (&'static str, &'r EmailAddress)>,
        errors: &mut FieldFaults,
    ) {
        let Some(key) = self.key.filter(|key| !key.recipients.is_empty()) else { return };
        for (field, address) in recipients {
            if !AddressPattern::allow(&key.recipients, address.as_str()) {
                let message = "has an address that this key may not send to (its allowed_recipients)";
                errors.note(FieldFault::new(field, message).coded(RefusalCode::RecipientNotAllowed));
            }
        }
    }

    /// Checks a finished mail as its recipient reads it: each author, the sender, and Reply-To.
    pub(crate) fn check_mail(&self, mail: &[u8], errors: &mut FieldFaults) {
        if !self.binds_senders() {
            return;
        }
        let header = HeaderBlock::read(mail);
        let fields = header.fields();
        for (name, field) in [("from", "from"), ("sender", "sender"), ("reply-to", "reply_to")] {
            if name == "reply-to" && !self.tenant.bind_reply_to {
                continue;
            }
            for value in fields.all(name.as_bytes()) {
                let found = addresses(value, ADDRESSES_MAX + 1);
                // An address that is not compared cannot be allowed.
                if found.len() > ADDRESSES_MAX {
                    let fault =
                        FieldFault::new(field, "names too many addresses to compare with allowed_senders");
                    errors.note(fault.coded(RefusalCode::SenderNotAllowed));
                }
                for address in found.iter().filter_map(|one| one.address.as_deref()) {
                    self.check_sender(field, address, errors);
                }
            }
        }
    }
}
