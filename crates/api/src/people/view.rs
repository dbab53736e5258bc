//! Users as JSON, and their request bodies. Passwords, secrets and codes never leave the store.

use postway_domain::{Time, User, UserRole, UserTenants};
use serde::Serialize;
use utoipa::ToSchema;

/// A person who operates the gateway.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = User)]
pub(crate) struct UserView {
    /// The name to sign in with, which the audit log shows.
    #[schema(example = "ada")]
    name: String,
    /// What people call the person.
    #[schema(example = "Ada Lovelace")]
    display_name: String,
    /// The address.
    #[schema(example = "ada@example.com")]
    email: Option<String>,
    /// What the user may do.
    #[schema(value_type = String, example = "operator")]
    role: UserRole,
    /// The tenants that the role applies to; null for all of them.
    #[schema(example = json!(["default"]))]
    tenants: Option<Vec<String>>,
    /// Whether a viewer or operator may read bodies where a tenant guards them.
    read_content: bool,
    /// The provider at which the user signs in.
    issuer: Option<String>,
    /// The provider's name for the person.
    subject: Option<String>,
    /// Whether the user has a password and an authenticator app here.
    has_password: bool,
    /// How many recovery codes are left.
    recovery_codes: usize,
    /// How many passkeys the user has.
    passkeys: usize,
    /// Since when the user may not sign in.
    #[schema(value_type = Option<String>, format = DateTime)]
    disabled_at: Option<Time>,
    /// Increases with each change, also when the user signs in.
    version: i64,
    /// When it was created.
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
    /// When it was last changed.
    #[schema(value_type = String, format = DateTime)]
    updated_at: Time,
}

/// A page of users.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UserList {
    /// By name.
    pub(super) data: Vec<UserView>,
    /// Pass this as `cursor` to read the next page; null on the last page.
    pub(super) next_cursor: Option<String>,
}

impl From<&User> for UserView {
    fn from(user: &User) -> Self {
        let credentials = &user.credentials;
        Self {
            name: user.name.to_string(),
            display_name: user.display_name.clone(),
            email: user.email.clone(),
            role: user.role,
            tenants: match &user.tenants {
                UserTenants::All => None,
                UserTenants::Named(named) => Some(named.iter().map(ToString::to_string).collect()),
            },
            read_content: user.read_content,
            issuer: user.identity.as_ref().map(|identity| identity.issuer.clone()),
            subject: user.identity.as_ref().map(|identity| identity.subject.clone()),
            has_password: credentials.password.is_some(),
            recovery_codes: credentials.recovery.len(),
            passkeys: credentials.passkeys.len(),
            disabled_at: user.disabled_at,
            version: user.version,
            created_at: user.created_at,
            updated_at: user.updated_at,
        }
    }
}

/// A user to create or change. Unknown fields are refused.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UserRequest {
    /// The name; required on creation, and fixed then. Capital letters are read as small ones.
    #[schema(example = "ada")]
    name: Option<String>,
    /// What people call the person, at most 200 characters.
    #[schema(example = "Ada Lovelace")]
    display_name: Option<String>,
    /// The address; `null` removes it. Who signs in at the provider with this address, which the provider has
    /// verified, becomes this user.
    #[schema(example = "ada@example.com")]
    email: Option<String>,
    /// `viewer`, `operator`, `manager` or `admin`; required on creation.
    #[schema(nullable = false, example = "operator")]
    role: Option<String>,
    /// The tenants that the role applies to; `null` for all of them. Required on creation.
    #[schema(example = json!(["default"]))]
    tenants: Option<Vec<String>>,
    /// Whether a viewer or operator may read bodies where a tenant guards them.
    #[schema(default = false)]
    read_content: Option<bool>,
    /// Whether the user may not sign in.
    #[schema(default = false)]
    disabled: Option<bool>,
    /// With `PATCH`: change only if the user still has this version.
    version: Option<i64>,
}
