//! People a tenant writes to, as far as it has told us of them.

use std::fmt;

use crate::{
    identity::{
        id::{RecipientId, TenantId},
        secret::Sealed,
    },
    time::Time,
};

/// One entry of a tenant's directory of recipients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownRecipient {
    /// Whose directory.
    pub tenant: TenantId,
    /// Our id of it.
    pub id: RecipientId,
    /// The tenant's own id of it, unique among those not deleted.
    pub external_id: Option<String>,
    /// The name, for people.
    pub name: Option<String>,
    /// The address, as given.
    pub address: String,
    /// A personal number, encrypted.
    pub personal_number: Option<Sealed>,
    /// Its keyed digest, to find it by.
    pub personal_number_digest: Option<PersonalDigest>,
    /// How it is shown.
    pub personal_number_masked: Option<String>,
    /// Rises with each change.
    pub version: i64,
    /// When it was made.
    pub created_at: Time,
    /// When it was changed last.
    pub updated_at: Time,
    /// When it was deleted: no mail goes to it any more.
    pub deleted_at: Option<Time>,
}

impl KnownRecipient {
    /// The place for which its personal number is sealed.
    pub fn secret_place(tenant: &TenantId, id: &RecipientId) -> String {
        format!("recipient/{tenant}/{id}")
    }
}

/// A personal number's keyed digest: the same number gives the same one, in one tenant and under one key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PersonalDigest(pub [u8; 32]);

impl fmt::Debug for PersonalDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PersonalDigest(***)")
    }
}

/// How a recipient of the directory is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecipientKey {
    /// By our id.
    Id(RecipientId),
    /// By the tenant's.
    External(String),
    /// By its personal number's digest.
    Personal(PersonalDigest),
}
