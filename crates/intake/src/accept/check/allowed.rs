//! Whom a mail may be from and to, where its tenant or its key is bound.
//!
//! A tenant's `allowed_senders` bind every way in; a key's bind, too, who shows it, and its `allowed_recipients` whom that key may send to. What is
//! compared is what the mail says: `From`, `Sender`, the envelope sender that it asks for, and `Reply-To` where the tenant wants
//! that. An envelope sender that an account or the tenant gives is not the sender's choice.

use postway_domain::{EmailAddress, TenantSettings, address_pattern::AddressPattern, key::KeyRestrictions};
use postway_mime::reader::{HeaderBlock, addresses};

use crate::refusal::{Code, FieldError, Findings};

/// Addresses of one field that are compared; a field with more is refused.
const ADDRESSES_MAX: usize = 100;

/// What binds the sender of a mail.
#[derive(Clone, Copy)]
pub(crate) struct SenderBounds<'a> {
    pub tenant: &'a TenantSettings,
    pub key: Option<&'a KeyRestrictions>,
}

impl SenderBounds<'_> {
    /// Whether anything is bound at all.
    fn binds_senders(&self) -> bool {
        !self.tenant.allowed_senders.is_empty() || self.key.is_some_and(|key| !key.senders.is_empty())
    }

    /// Notes an address, by the field it stands in, that may not send.
    pub(crate) fn check_sender(&self, field: &str, address: &str, findings: &mut Findings) {
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
        findings.note(FieldError::new(field, message).coded(Code::SenderNotAllowed));
    }

    /// The same for where answers go, which is bound only where the tenant wants it.
    pub(crate) fn check_reply_to(&self, field: &str, address: &str, findings: &mut Findings) {
        if self.tenant.bind_reply_to {
            self.check_sender(field, address, findings);
        }
    }

    /// Notes recipients, by their field, whom this key may not send to.
    pub(crate) fn check_recipients<'r>(
        &self,
        recipients: impl Iterator<Item = (&'static str, &'r EmailAddress)>,
        findings: &mut Findings,
    ) {
        let Some(key) = self.key.filter(|key| !key.recipients.is_empty()) else { return };
        for (field, address) in recipients {
            if !AddressPattern::allow(&key.recipients, address.as_str()) {
                let message = "has an address that this key may not send to (its allowed_recipients)";
                findings.note(FieldError::new(field, message).coded(Code::RecipientNotAllowed));
            }
        }
    }

    /// Checks a finished mail as whoever receives it reads it: each author, the sender, and where answers go.
    pub(crate) fn check_mail(&self, mail: &[u8], findings: &mut Findings) {
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
                // What cannot be compared cannot be allowed.
                if found.len() > ADDRESSES_MAX {
                    let fault =
                        FieldError::new(field, "names too many addresses to compare with allowed_senders");
                    findings.note(fault.coded(Code::SenderNotAllowed));
                }
                for address in found.iter().filter_map(|one| one.address.as_deref()) {
                    self.check_sender(field, address, findings);
                }
            }
        }
    }
}
