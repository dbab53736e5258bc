//! Known recipients: a tenant's directory of the people it writes to, so that a message can name them by an
//! id or a personal number. Contacts, which inbound rules look up, are in `contact`.

use std::fmt;

use crate::{
    identity::{
        id::{RecipientId, TenantId},
        secret::SealedSecret,
    },
    tenant::locale::MailLocale,
    time::Time,
};

/// One entry of a tenant's directory of recipients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownRecipient {
    /// The tenant that owns it.
    pub tenant: TenantId,
    /// Our id.
    pub id: RecipientId,
    /// The tenant's id, unique among entries that are not deleted.
    pub external_id: Option<String>,
    /// The name, for people.
    pub name: Option<String>,
    /// The address, as given.
    pub address: String,
    /// The language of the mail that it gets, unless a message names another.
    pub locale: Option<MailLocale>,
    /// A personal number, encrypted.
    pub personal_number: Option<SealedSecret>,
    /// The keyed digest of the personal number, for lookups.
    pub personal_number_digest: Option<PersonalDigest>,
    /// The personal number as it is shown, masked.
    pub personal_number_masked: Option<String>,
    /// The version, which increases with each change.
    pub version: i64,
    /// When it was created.
    pub created_at: Time,
    /// When it was changed last.
    pub updated_at: Time,
    /// When it was deleted; no mail is sent to it any more.
    pub deleted_at: Option<Time>,
}

impl KnownRecipient {
    /// The context that its personal number is sealed for.
    pub fn sealing_context(tenant: &TenantId, id: &RecipientId) -> String {
        format!("recipient/{tenant}/{id}")
    }
}

/// The keyed digest of a personal number. The same number has the same digest in one tenant and under one
/// key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PersonalDigest(pub [u8; 32]);

impl fmt::Debug for PersonalDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PersonalDigest(***)")
    }
}

/// How a message names a recipient of the directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecipientKey {
    /// By our id.
    Id(RecipientId),
    /// By the tenant's id.
    External(String),
    /// By the digest of the personal number.
    Personal(PersonalDigest),
}
