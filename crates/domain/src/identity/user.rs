//! Users: the people who operate the gateway, with their roles, tenants and ways to sign in.
//!
//! A role is a set of rights, and the tenants say where it applies. A password is kept as its Argon2id hash,
//! the secret of an authenticator app sealed, recovery codes as digests, and of a passkey the public half:
//! nothing here signs anybody in.

use std::{collections::BTreeSet, fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::{
    identity::{
        id::{InvalidIdentifier, TenantId, UserId},
        key::KeyScope,
    },
    time::Time,
};

/// What a user may do. Each role may do what the one before it may, and more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UserRole {
    /// Reads messages, events and counts.
    Viewer = 1,
    /// Acts on mail as well: sends, cancels, retries, resolves.
    Operator = 2,
    /// Changes what the tenant has as well, and reads bodies everywhere.
    Manager = 3,
    /// Manages users and keys as well; with all tenants, does everything that the admin key may.
    Admin = 4,
}

impl UserRole {
    /// All roles, the weakest first.
    pub const ALL: [Self; 4] = [Self::Viewer, Self::Operator, Self::Manager, Self::Admin];

    /// The word that users see.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Manager => "manager",
            Self::Admin => "admin",
        }
    }

    /// The code that is stored.
    pub fn code(self) -> i64 {
        self as i64
    }

    /// The role with this stored code.
    pub fn from_code(code: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.code() == code)
    }

    /// The rights of this role within its tenants.
    pub fn scopes(self) -> &'static [KeyScope] {
        match self {
            Self::Viewer => &[KeyScope::Read],
            Self::Operator => &[KeyScope::Send, KeyScope::Read],
            Self::Manager | Self::Admin => &KeyScope::ALL,
        }
    }
}

impl FromStr for UserRole {
    type Err = InvalidIdentifier;

    fn from_str(text: &str) -> Result<Self, InvalidIdentifier> {
        let found = Self::ALL.into_iter().find(|role| role.as_str() == text);
        found.ok_or_else(|| InvalidIdentifier::of("must be viewer, operator, manager or admin"))
    }
}

/// The tenants that a role applies to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Option<BTreeSet<TenantId>>", into = "Option<BTreeSet<TenantId>>")]
pub enum UserTenants {
    /// All of them, also those that come later.
    All,
    /// Only these.
    Named(BTreeSet<TenantId>),
}

impl UserTenants {
    /// The most tenants that are named.
    pub const NAMED_MAX: usize = 500;

    /// Whether this tenant is one of them.
    pub fn has(&self, tenant: &TenantId) -> bool {
        match self {
            Self::All => true,
            Self::Named(named) => named.contains(tenant),
        }
    }

    /// Whether all of `other` are among them.
    pub fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::All, _) => true,
            (Self::Named(_), Self::All) => false,
            (Self::Named(own), Self::Named(other)) => other.is_subset(own),
        }
    }
}

impl From<Option<BTreeSet<TenantId>>> for UserTenants {
    fn from(named: Option<BTreeSet<TenantId>>) -> Self {
        named.map_or(Self::All, Self::Named)
    }
}

impl From<UserTenants> for Option<BTreeSet<TenantId>> {
    fn from(tenants: UserTenants) -> Self {
        match tenants {
            UserTenants::All => None,
            UserTenants::Named(named) => Some(named),
        }
    }
}

/// The name that a user signs in with and that the audit log shows. It never changes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct UserName(Box<str>);

impl UserName {
    /// The greatest length, in characters.
    pub const CHARS_MAX: usize = 100;

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for UserName {
    type Err = InvalidIdentifier;

    /// Capital letters are read as small ones, so that a name is one person's however it is typed.
    fn from_str(text: &str) -> Result<Self, InvalidIdentifier> {
        let text = text.trim().to_ascii_lowercase();
        let accepts = |byte: u8| byte.is_ascii_alphanumeric() || b"._-@+".contains(&byte);
        if text.is_empty() || text.len() > Self::CHARS_MAX || !text.bytes().all(accepts) {
            return Err(InvalidIdentifier::of(
                "must be 1 to 100 characters of a-z, 0-9, dot, underscore, hyphen, at and plus",
            ));
        }
        Ok(Self(text.into()))
    }
}

impl fmt::Display for UserName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Who a user is at an identity provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserIdentity {
    /// The provider.
    pub issuer: String,
    /// The provider's name for the person, which it never gives to another one.
    pub subject: String,
}

impl UserIdentity {
    /// The longest issuer and subject, in bytes.
    pub const BYTES_MAX: usize = 255;
}

/// A passkey: a key pair of WebAuthn, whose private half never leaves the user's device. It proves a person
/// whom the device has recognised, so it stands for password and code together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserPasskey {
    /// The id that the device gave it, in base64url.
    pub id: String,
    /// What the user calls it.
    pub name: String,
    /// The host whose pages it was made for; no other page can use it.
    pub host: String,
    /// The algorithm, by its number in the registry of COSE.
    pub algorithm: i64,
    /// The public key as a SubjectPublicKeyInfo, in base64url.
    pub public_key: String,
    /// What the device's counter said at the last sign-in; 0 for a device that does not count.
    pub uses: u32,
    /// When it was added.
    pub added_at: Time,
    /// When the last sign-in with it was begun: the answer to that one or to an earlier one opens nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub challenged_at: Option<Time>,
}

impl UserPasskey {
    /// How many a user may have.
    pub const COUNT_MAX: usize = 10;
    /// The longest name, in characters.
    pub const NAME_CHARS_MAX: usize = 60;
}

/// What a user signs in with here. All of it is optional: who signs in at a provider has none.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct UserCredentials {
    /// The password's Argon2id hash.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    /// The authenticator app's secret: sealed, in base64url.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub totp: Option<String>,
    /// The last time step whose code was used: no code of it or of an earlier one is accepted again.
    pub totp_step: i64,
    /// Digests of the recovery codes that are left, in base64url.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub recovery: Vec<String>,
    /// Passkeys, in the order in which they were added.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub passkeys: Vec<UserPasskey>,
    /// How often an invitation was made: only the latest works, and only once.
    pub invitations: i64,
}

impl UserCredentials {
    /// Whether the user can sign in here, without a provider.
    pub fn opens(&self) -> bool {
        self.password.is_some() || !self.passkeys.is_empty()
    }
}

impl fmt::Debug for UserCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UserCredentials(***)")
    }
}

/// A user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The id, which no other user ever has.
    pub id: UserId,
    /// The name.
    pub name: UserName,
    /// What people call the person.
    pub display_name: String,
    /// The address, for people to see and for the first sign-in at a provider.
    pub email: Option<String>,
    /// What the user may do.
    pub role: UserRole,
    /// For which tenants.
    pub tenants: UserTenants,
    /// Whether a viewer or operator may read bodies where the tenant says that this is a right of its own.
    pub read_content: bool,
    /// Who the user is at an identity provider.
    pub identity: Option<UserIdentity>,
    /// What the user signs in with here.
    pub credentials: UserCredentials,
    /// Since when the user may not sign in.
    pub disabled_at: Option<Time>,
    /// When it was created.
    pub created_at: Time,
    /// When it was changed.
    pub updated_at: Time,
    /// The number of changes.
    pub version: i64,
}

impl User {
    /// Whether this user may do everything, like the admin key.
    pub fn is_full_admin(&self) -> bool {
        self.role == UserRole::Admin && self.tenants == UserTenants::All && self.disabled_at.is_none()
    }

    /// Whether the user has this right in its tenants.
    pub fn may(&self, scope: KeyScope) -> bool {
        self.role.scopes().contains(&scope) || (scope == KeyScope::ReadContent && self.read_content)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_role_may_do_what_the_weaker_ones_may() {
        for two in UserRole::ALL.windows(2) {
            assert!(two[0] < two[1]);
            assert!(two[0].scopes().iter().all(|scope| two[1].scopes().contains(scope)), "{two:?}");
        }
        assert!(!UserRole::Viewer.scopes().contains(&KeyScope::Send));
        assert!(!UserRole::Operator.scopes().contains(&KeyScope::ReadContent));
        for role in UserRole::ALL {
            assert_eq!(UserRole::from_code(role.code()), Some(role));
            assert_eq!(role.as_str().parse::<UserRole>().unwrap(), role);
        }
        assert_eq!(UserRole::from_code(0), None);
    }

    #[test]
    fn nobody_covers_all_tenants_by_naming_some() {
        let named = |names: &[&str]| UserTenants::Named(names.iter().map(|n| n.parse().unwrap()).collect());
        assert!(UserTenants::All.covers(&UserTenants::All) && UserTenants::All.covers(&named(&["a"])));
        assert!(named(&["a", "b"]).covers(&named(&["b"])) && named(&["a"]).covers(&named(&[])));
        assert!(!named(&["a"]).covers(&named(&["a", "b"])) && !named(&["a"]).covers(&UserTenants::All));
        let stored = serde_json::to_string(&named(&["a"])).unwrap();
        assert_eq!(serde_json::from_str::<UserTenants>(&stored).unwrap(), named(&["a"]));
        assert_eq!(serde_json::from_str::<UserTenants>("null").unwrap(), UserTenants::All);
    }

    #[test]
    fn a_name_is_one_persons_however_it_is_typed() {
        assert_eq!(" Ada@Example.net ".parse::<UserName>().unwrap().as_str(), "ada@example.net");
        for wrong in ["", "a b", "ädä", "a:b", "a/b", &"x".repeat(101)] {
            assert!(wrong.parse::<UserName>().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn credentials_never_show() {
        let some =
            UserCredentials { password: Some("$argon2id$…".to_owned()), ..UserCredentials::default() };
        assert_eq!(format!("{some:?}"), "UserCredentials(***)");
    }
}
