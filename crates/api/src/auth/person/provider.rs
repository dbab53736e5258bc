//! Signing in at an identity provider: what the gateway makes of a person whom the provider has proven.
//!
//! The protocol is the binary's business ([`SignInProvider`]). Here it is decided who that is: a user with
//! this identity; else one whose address the provider has verified and who has no other way in; else a new
//! one, where the operator allows that. Role and tenants come from claims where the operator says so, at each
//! sign-in, and a person without a role is not signed in.

use std::{collections::BTreeMap, fmt, sync::Arc};

use async_trait::async_trait;
use postway_domain::{
    TenantId, User, UserName, UserRole, UserTenants,
    id::UserId,
    user::{UserCredentials, UserIdentity},
};
use postway_store::record::{ChangeResult, DirectoryChange, UserKey};
use serde_json::{Map, Value, json};

use crate::{
    auth::CallerActor,
    http::{error::ApiError, request_id::RequestId},
    state::AppState,
};

/// How often a user is read again because it was changed meanwhile.
const TRIES_MAX: u32 = 3;
/// The word that means all tenants.
const ALL_TENANTS: &str = "*";
const DISPLAY_NAME_CHARS_MAX: usize = 200;

/// A sign-in that has begun at a provider.
#[derive(Clone, Debug)]
pub struct AwaySignIn {
    /// Where to send the person.
    pub url: String,
    /// What must come back.
    pub state: String,
    /// What the token must contain.
    pub nonce: String,
    /// What the code is redeemed with.
    pub verifier: String,
}

/// Why a provider signed nobody in; the texts are for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AwayFailure {
    /// A retry may help.
    Unavailable(String),
    /// The provider refused, or its token is not good.
    Refused(String),
}

/// The protocol that a provider speaks.
#[async_trait]
pub trait SignInProvider: Send + Sync {
    /// The provider's identity: what user records name.
    fn issuer(&self) -> &str;

    /// Begins a sign-in that comes back to `redirect_uri`.
    async fn begin(&self, redirect_uri: &str) -> Result<AwaySignIn, AwayFailure>;

    /// The claims about the person for whom this code was given, all of them proven.
    async fn redeem(
        &self,
        code: &str,
        begun: &AwaySignIn,
        redirect_uri: &str,
    ) -> Result<Map<String, Value>, AwayFailure>;

    /// The subject whose sessions are over, as a token says that the provider has sent.
    async fn read_logout(&self, token: &str) -> Result<String, AwayFailure>;

    /// The provider's page for signing out, which comes back to `back`.
    async fn logout_url(&self, back: &str) -> Option<String>;
}

/// A provider, and what its claims mean here.
#[derive(Clone)]
pub struct ProviderSignIn {
    /// The protocol.
    pub provider: Arc<dyn SignInProvider>,
    /// What people call the provider.
    pub name: String,
    /// The address of this gateway that the provider sends people back to.
    pub redirect_url: String,
    /// The claim that has the role; a path with dots leads into objects.
    pub role_claim: Option<String>,
    /// The role for each value of that claim; if empty, the values are the roles.
    pub roles: BTreeMap<String, UserRole>,
    /// The role of who has none by the claim.
    pub default_role: Option<UserRole>,
    /// The claim that has the tenants.
    pub tenants_claim: Option<String>,
    /// The tenants of who has none by the claim; `*` means all.
    pub default_tenants: Vec<String>,
    /// Whether people who are not known here yet become users.
    pub just_in_time: bool,
}

impl fmt::Debug for ProviderSignIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProviderSignIn({})", self.name)
    }
}

/// Why a proven person is not signed in here: a word for the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SignInRefusal {
    /// The provider gives no role or no tenant that counts here.
    NoRole,
    /// Nobody here is this person, and none may be made.
    NoUser,
    /// The user may not sign in.
    Disabled,
    /// The claims would take the rights of the last user who may do everything.
    LastAdmin,
}

impl SignInRefusal {
    /// The word that the page explains.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::NoRole => "no_role",
            Self::NoUser => "no_user",
            Self::Disabled => "disabled",
            Self::LastAdmin => "last_admin",
        }
    }
}

/// What the claims say about a person.
struct ClaimedPerson {
    identity: UserIdentity,
    email: Option<String>,
    is_email_verified: bool,
    names: Vec<UserName>,
    display_name: String,
    /// `None` where no claim says it.
    role: Option<UserRole>,
    tenants: Option<UserTenants>,
}

impl ProviderSignIn {
    /// The user whom these claims prove, made or changed as they say.
    pub(crate) async fn user_of(
        &self,
        app: &AppState,
        claims: &Map<String, Value>,
        request_id: &RequestId,
    ) -> Result<Result<User, SignInRefusal>, ApiError> {
        let Some(person) = self.person(claims) else { return Ok(Err(SignInRefusal::NoUser)) };
        for _ in 0..TRIES_MAX {
            let found = find(app, &person).await?;
            let made = match found {
                Some(user) if user.disabled_at.is_some() => return Ok(Err(SignInRefusal::Disabled)),
                Some(user) => self.changed(app, user, &person, request_id).await?,
                None if self.just_in_time => self.made(app, &person, request_id).await?,
                None => return Ok(Err(SignInRefusal::NoUser)),
            };
            match made {
                Some(result) => return Ok(result),
                None => continue,
            }
        }
        Err(ApiError::conflict("the user is being changed by others; try again"))
    }

    fn person(&self, claims: &Map<String, Value>) -> Option<ClaimedPerson> {
        let text = |name: &str| claims.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        let subject = text("sub")?.to_owned();
        let issuer = self.provider.issuer().to_owned();
        if subject.len() > UserIdentity::BYTES_MAX || issuer.len() > UserIdentity::BYTES_MAX {
            return None;
        }
        let email = text("email").map(str::to_lowercase);
        let names = [text("preferred_username"), email.as_deref(), Some(subject.as_str())];
        let names = names.into_iter().flatten().filter_map(|name| name.parse().ok()).collect();
        let display_name = text("name").unwrap_or_default().chars().filter(|one| !one.is_control());
        Some(ClaimedPerson {
            display_name: display_name.take(DISPLAY_NAME_CHARS_MAX).collect(),
            is_email_verified: claims.get("email_verified").and_then(Value::as_bool).unwrap_or(false),
            role: self.role(claims),
            tenants: self.tenants(claims),
            identity: UserIdentity { issuer, subject },
            email,
            names,
        })
    }

    /// The strongest role that the claim gives, or the default.
    fn role(&self, claims: &Map<String, Value>) -> Option<UserRole> {
        let words = self.role_claim.as_deref().map(|path| words_at(claims, path)).unwrap_or_default();
        let role = |word: &String| match self.roles.is_empty() {
            true => word.parse().ok(),
            false => self.roles.get(word).copied(),
        };
        words.iter().filter_map(role).max().or(self.default_role)
    }

    /// The tenants that the claim gives, or the default.
    fn tenants(&self, claims: &Map<String, Value>) -> Option<UserTenants> {
        let words = match &self.tenants_claim {
            Some(path) => words_at(claims, path),
            None => self.default_tenants.clone(),
        };
        if words.iter().any(|word| word == ALL_TENANTS) {
            return Some(UserTenants::All);
        }
        let named: std::collections::BTreeSet<TenantId> =
            words.iter().filter_map(|word| word.parse().ok()).take(UserTenants::NAMED_MAX).collect();
        (!named.is_empty()).then_some(UserTenants::Named(named))
    }

    /// A user who is known: with the rights that the claims give now. `None` if it was changed meanwhile.
    async fn changed(
        &self,
        app: &AppState,
        user: User,
        person: &ClaimedPerson,
        request_id: &RequestId,
    ) -> Result<Option<Result<User, SignInRefusal>>, ApiError> {
        let mut next = user.clone();
        next.identity = Some(person.identity.clone());
        // Without a claim, rights are what admins here have given.
        let lacks_role = self.role_claim.is_some() && person.role.is_none();
        if lacks_role || (self.tenants_claim.is_some() && person.tenants.is_none()) {
            // What the provider has just taken away does not go on in another browser.
            end_sessions(app, &user, "no_role", request_id).await?;
            return Ok(Some(Err(SignInRefusal::NoRole)));
        }
        if let Some(role) = person.role.filter(|_| self.role_claim.is_some()) {
            next.role = role;
        }
        if let Some(tenants) = person.tenants.clone().filter(|_| self.tenants_claim.is_some()) {
            next.tenants = tenants;
        }
        if !person.display_name.is_empty() {
            next.display_name.clone_from(&person.display_name);
        }
        (next.version, next.updated_at) = (user.version + 1, app.clock.now());
        let actor = CallerActor::of_user(&next);
        let detail = json!({"way": "oidc", "role": next.role, "tenants": next.tenants});
        let entry = app.audit(&actor, None, "user.sign_in", next.name.as_str(), request_id, Some(detail));
        let change = DirectoryChange::UpdateUser(next.clone(), user.version);
        Ok(match app.store.change(change, Some(entry)).await? {
            ChangeResult::Done => Some(Ok(next)),
            ChangeResult::InUse => Some(Err(SignInRefusal::LastAdmin)),
            _ => None,
        })
    }

    /// A user who was not known. `None` if somebody else made it meanwhile.
    async fn made(
        &self,
        app: &AppState,
        person: &ClaimedPerson,
        request_id: &RequestId,
    ) -> Result<Option<Result<User, SignInRefusal>>, ApiError> {
        let (Some(role), Some(tenants)) = (person.role, person.tenants.clone()) else {
            return Ok(Some(Err(SignInRefusal::NoRole)));
        };
        let now = app.clock.now();
        for name in &person.names {
            let user = User {
                id: UserId::new(now, &mut rand::rng()),
                name: name.clone(),
                display_name: person.display_name.clone(),
                email: person.email.clone().filter(|_| person.is_email_verified),
                role,
                tenants: tenants.clone(),
                read_content: false,
                identity: Some(person.identity.clone()),
                credentials: UserCredentials::default(),
                disabled_at: None,
                created_at: now,
                updated_at: now,
                version: 1,
            };
            let actor = CallerActor::of_user(&user);
            let detail = json!({"way": "oidc", "role": role, "tenants": tenants});
            let entry = app.audit(&actor, None, "user.create", user.name.as_str(), request_id, Some(detail));
            let made = app.store.change(DirectoryChange::CreateUser(user.clone()), Some(entry)).await?;
            if made == ChangeResult::Done {
                return Ok(Some(Ok(user)));
            }
            // Either the name is another one's, who is never taken for this person, or the person is there.
            if app.store.user(&UserKey::Identity(person.identity.clone())).await?.is_some() {
                return Ok(None);
            }
        }
        Ok(Some(Err(SignInRefusal::NoUser)))
    }
}

/// Who this subject of the provider is.
pub(crate) fn identity_of(provider: &ProviderSignIn, subject: &str) -> UserIdentity {
    UserIdentity { issuer: provider.provider.issuer().to_owned(), subject: subject.to_owned() }
}

/// Ends all sessions of a user because of what the provider has said.
pub(crate) async fn end_sessions(
    app: &AppState,
    user: &User,
    why: &str,
    request_id: &RequestId,
) -> Result<(), ApiError> {
    let detail = json!({"by": "provider", "why": why});
    let actor = CallerActor::of_user(user);
    let entry = app.audit(&actor, None, "user.sign_out", user.name.as_str(), request_id, Some(detail));
    app.store.change(DirectoryChange::EndUserSessions(user.id), Some(entry)).await?;
    Ok(())
}

/// The user who is this person: by identity, or by an address that the provider has verified, if the user has
/// no other way in.
async fn find(app: &AppState, person: &ClaimedPerson) -> Result<Option<User>, ApiError> {
    if let Some(user) = app.store.user(&UserKey::Identity(person.identity.clone())).await? {
        return Ok(Some(user));
    }
    let Some(email) = person.email.clone().filter(|_| person.is_email_verified) else { return Ok(None) };
    let user = app.store.user(&UserKey::Email(email)).await?;
    Ok(user.filter(|user| user.identity.is_none() && !user.credentials.opens()))
}

/// The texts of a claim: one, or a list. A name with dots leads into objects.
fn words_at(claims: &Map<String, Value>, path: &str) -> Vec<String> {
    let value = claims.get(path).or_else(|| {
        let mut steps = path.split('.');
        let first = claims.get(steps.next()?)?;
        steps.try_fold(first, |value, step| value.get(step))
    });
    match value {
        Some(Value::String(word)) => vec![word.clone()],
        Some(Value::Array(words)) => words.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct NoProvider;

    #[async_trait]
    impl SignInProvider for NoProvider {
        fn issuer(&self) -> &str {
            "https://id.example"
        }

        async fn begin(&self, _: &str) -> Result<AwaySignIn, AwayFailure> {
            Err(AwayFailure::Unavailable("away".to_owned()))
        }

        async fn redeem(&self, _: &str, _: &AwaySignIn, _: &str) -> Result<Map<String, Value>, AwayFailure> {
            Err(AwayFailure::Unavailable("away".to_owned()))
        }

        async fn read_logout(&self, _: &str) -> Result<String, AwayFailure> {
            Err(AwayFailure::Unavailable("away".to_owned()))
        }

        async fn logout_url(&self, _: &str) -> Option<String> {
            None
        }
    }

    fn settings() -> ProviderSignIn {
        ProviderSignIn {
            provider: Arc::new(NoProvider),
            name: "Example".to_owned(),
            redirect_url: "https://mail.example/v1/session/oidc/callback".to_owned(),
            role_claim: Some("realm_access.roles".to_owned()),
            roles: [("ops".to_owned(), UserRole::Operator), ("chiefs".to_owned(), UserRole::Admin)].into(),
            default_role: None,
            tenants_claim: Some("tenants".to_owned()),
            default_tenants: Vec::new(),
            just_in_time: true,
        }
    }

    fn person(claims: Value) -> ClaimedPerson {
        settings().person(claims.as_object().unwrap()).unwrap()
    }

    #[test]
    fn role_and_tenants_come_from_claims_and_the_strongest_role_counts() {
        let some = person(json!({
            "sub": "1", "realm_access": {"roles": ["other", "ops", "chiefs"]}, "tenants": ["default", "a b"],
        }));
        assert_eq!(some.role, Some(UserRole::Admin));
        assert_eq!(some.tenants, Some(UserTenants::Named(["default".parse().unwrap()].into())));
        let none = person(json!({"sub": "1", "realm_access": {"roles": ["admin"]}, "tenants": []}));
        assert_eq!((none.role, none.tenants), (None, None), "a word that is not in the table is no role");
        let all = person(json!({"sub": "1", "tenants": "*"}));
        assert_eq!((all.role, all.tenants), (None, Some(UserTenants::All)));
        let words =
            ProviderSignIn { role_claim: Some("role".to_owned()), roles: BTreeMap::new(), ..settings() };
        assert_eq!(words.role(json!({"role": "viewer"}).as_object().unwrap()), Some(UserRole::Viewer));
        assert_eq!(words.role(json!({"role": "god"}).as_object().unwrap()), None);
    }

    #[test]
    fn an_address_counts_only_if_the_provider_verified_it() {
        for (claims, verified) in [
            (json!({"sub": "1", "email": "Ada@Example.net", "email_verified": true}), true),
            (json!({"sub": "1", "email": "ada@example.net"}), false),
            (json!({"sub": "1", "email": "ada@example.net", "email_verified": "true"}), false),
        ] {
            let person = person(claims);
            assert_eq!(
                (person.email.as_deref(), person.is_email_verified),
                (Some("ada@example.net"), verified)
            );
        }
        assert!(settings().person(json!({"email": "a@example.net"}).as_object().unwrap()).is_none());
    }
}
