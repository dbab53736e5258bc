//! `/v1/passkeys`: the passkeys with which a person signs in.
//!
//! A passkey opens everything that its user may do, for as long as it is listed. So it is added in a session
//! that began a moment ago, and only by who signs in here: whoever signs in at a provider would keep a way in
//! that the provider cannot close. An invitation replaces all passkeys.

use axum::{
    Json,
    extract::{Request, State},
    http::{StatusCode, request::Parts},
};
use postway_domain::{Time, User, user::UserPasskey};
use postway_store::record::{ChangeResult, DirectoryChange, UserKey};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use crate::{
    auth::{
        AuthenticatedKey, CallerActor, authenticate,
        person::{
            SignedInUser,
            passkey::{NewPasskeyAnswer, PasskeyChallenge},
        },
        session::passkey::PasskeyChallengeView,
    },
    http::{
        body,
        error::{ApiError, FieldError},
        request_id::RequestId,
        resource::{change_versioned, path_parameter},
    },
    state::{AppState, SharedState},
};

/// How long after its beginning a session may add passkeys.
const FRESH_MS: i64 = 15 * 60 * 1_000;
/// The largest body: it has a few parts of at most 4,096 characters.
const BYTES_MAX: usize = 32 * 1024;

/// A passkey.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Passkey)]
pub(crate) struct PasskeyView {
    /// Its id.
    id: String,
    /// What its owner calls it.
    #[schema(example = "laptop")]
    name: String,
    /// The host whose pages it opens.
    #[schema(example = "mail.example.com")]
    host: String,
    /// When it was added.
    #[schema(value_type = String, format = DateTime)]
    added_at: Time,
    /// When it was last used to sign in.
    #[schema(value_type = Option<String>, format = DateTime)]
    used_at: Option<Time>,
}

impl From<&UserPasskey> for PasskeyView {
    fn from(passkey: &UserPasskey) -> Self {
        Self {
            id: passkey.id.clone(),
            name: passkey.name.clone(),
            host: passkey.host.clone(),
            added_at: passkey.added_at,
            used_at: passkey.challenged_at,
        }
    }
}

/// The passkeys of a user.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PasskeyList {
    /// In the order in which they were added.
    data: Vec<PasskeyView>,
}

/// A passkey to add.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AddPasskey)]
pub(crate) struct PasskeyAddRequest {
    /// The text that came with the challenge.
    ceremony: String,
    /// What the browser answered.
    passkey: NewPasskeyAnswer,
}

/// The passkey that `{id}` in the path names.
pub(crate) struct NamedPasskey(String);

path_parameter!(NamedPasskey, "id", |given| Ok(NamedPasskey(given.to_owned())));

fn no_passkey() -> ApiError {
    ApiError::not_found("you have no such passkey")
}

/// The person who calls.
async fn person(parts: &Parts, app: &AppState) -> Result<std::sync::Arc<SignedInUser>, ApiError> {
    match authenticate(parts, app).await? {
        AuthenticatedKey::User(own) => Ok(own),
        AuthenticatedKey::Admin | AuthenticatedKey::Key(_) => {
            Err(ApiError::forbidden("this call is for users: a key has no passkeys"))
        }
    }
}

/// Refuses a session that may not add a passkey.
fn check_may_add(app: &AppState, own: &SignedInUser) -> Result<(), ApiError> {
    if !own.user.credentials.opens() {
        return Err(ApiError::forbidden(
            "you sign in at a provider, which could not take this passkey away: ask an admin for an invitation",
        ));
    }
    if app.clock.now().as_millis() - own.session.began_at.as_millis() > FRESH_MS {
        return Err(ApiError::forbidden(
            "sign in again first: a passkey is added within 15 minutes of signing in",
        ));
    }
    check_room(&own.user)
}

fn check_room(user: &User) -> Result<(), ApiError> {
    match user.credentials.passkeys.len() < UserPasskey::COUNT_MAX {
        true => Ok(()),
        false => Err(ApiError::conflict("you have ten passkeys; delete one first")),
    }
}

/// The user as it is stored now. The session's may be some seconds old.
async fn current(app: &AppState, own: &SignedInUser) -> Result<User, ApiError> {
    app.store.user(&UserKey::Id(own.user.id)).await?.ok_or_else(no_passkey)
}

/// List your passkeys
///
/// For people; a key has none.
#[utoipa::path(
    get,
    path = "/v1/passkeys",
    operation_id = "listPasskeys",
    tag = "users",
    responses((status = 200, description = "In the order in which they were added", body = PasskeyList))
)]
pub(crate) async fn list(
    State(app): State<SharedState>,
    parts: Parts,
) -> Result<Json<PasskeyList>, ApiError> {
    let own = person(&parts, &app).await?;
    let user = current(&app, &own).await?;
    Ok(Json(PasskeyList { data: user.credentials.passkeys.iter().map(PasskeyView::from).collect() }))
}

/// Ask for a challenge for a new passkey
///
/// For people, within 15 minutes of signing in. The page passes it to `navigator.credentials.create`.
#[utoipa::path(
    post,
    path = "/v1/passkeys/challenge",
    operation_id = "challengeNewPasskey",
    tag = "users",
    responses((status = 200, description = "The challenge", body = PasskeyChallengeView))
)]
pub(crate) async fn challenge(
    State(app): State<SharedState>,
    parts: Parts,
) -> Result<Json<PasskeyChallengeView>, ApiError> {
    let own = person(&parts, &app).await?;
    check_may_add(&app, &own)?;
    let challenge = PasskeyChallenge::make(Some(own.user.id), app.clock.now());
    let ceremony = challenge.seal(&app.secret_key)?;
    Ok(Json(PasskeyChallengeView::for_new(&challenge, ceremony, &own.user)))
}

/// Add a passkey
///
/// For people, within 15 minutes of signing in; at most ten. It opens as much as password and code together.
#[utoipa::path(
    post,
    path = "/v1/passkeys",
    operation_id = "addPasskey",
    tag = "users",
    request_body = PasskeyAddRequest,
    responses((status = 201, description = "It is added", body = PasskeyView))
)]
pub(crate) async fn add(
    State(app): State<SharedState>,
    request_id: RequestId,
    request: Request,
) -> Result<(StatusCode, Json<PasskeyView>), ApiError> {
    let (parts, body) = request.into_parts();
    let own = person(&parts, &app).await?;
    check_may_add(&app, &own)?;
    let body = body::json_object_within(Request::from_parts(parts, body), BYTES_MAX).await?;
    let form =
        "must be what the browser answered: name, id, client_data, authenticator_data, public_key, algorithm";
    let wrong = |_| ApiError::invalid(vec![FieldError::new("passkey", form)]);
    let added: PasskeyAddRequest = serde_json::from_value(body.into()).map_err(wrong)?;
    let now = app.clock.now();
    let challenge = PasskeyChallenge::open(&app.secret_key, &added.ceremony, Some(own.user.id), now)
        .map_err(|fault| ApiError::field("ceremony", fault.0))?;
    let passkey = added.passkey.accept(&challenge.challenge, now);
    let passkey = passkey.map_err(|fault| ApiError::field("passkey", fault.0))?;
    change_versioned("user", || async {
        let user = current(&app, &own).await?;
        check_room(&user)?;
        if user.credentials.passkeys.iter().any(|known| known.id == passkey.id) {
            return Err(ApiError::conflict("you have this passkey already"));
        }
        let mut next = user.clone();
        next.credentials.passkeys.push(passkey.clone());
        write(&app, &user, next, "passkey.create", &passkey.name, &request_id).await
    })
    .await?;
    Ok((StatusCode::CREATED, Json(PasskeyView::from(&passkey))))
}

/// Delete a passkey
///
/// It opens nothing any more; sessions that it began go on. 409 for your only way in.
#[utoipa::path(
    delete,
    path = "/v1/passkeys/{id}",
    operation_id = "deletePasskey",
    tag = "users",
    params(("id" = String, Path, description = "The passkey's id")),
    responses((status = 204, description = "It is deleted"))
)]
pub(crate) async fn delete(
    State(app): State<SharedState>,
    request_id: RequestId,
    NamedPasskey(id): NamedPasskey,
    parts: Parts,
) -> Result<StatusCode, ApiError> {
    let own = person(&parts, &app).await?;
    change_versioned("user", || async {
        let user = current(&app, &own).await?;
        let gone = user.credentials.passkeys.iter().find(|passkey| passkey.id == id);
        let name = gone.ok_or_else(no_passkey)?.name.clone();
        let mut next = user.clone();
        next.credentials.passkeys.retain(|passkey| passkey.id != id);
        if !next.credentials.opens() && next.identity.is_none() {
            return Err(ApiError::conflict("this is your only way in; add another passkey first"));
        }
        write(&app, &user, next, "passkey.delete", &name, &request_id).await
    })
    .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Writes the changed user, if it still is as it was read.
async fn write(
    app: &AppState,
    before: &User,
    next: User,
    action: &str,
    passkey: &str,
    request_id: &RequestId,
) -> Result<Option<()>, ApiError> {
    let (expected, actor) = (before.version, CallerActor::of_user(before));
    let next = User { version: expected + 1, updated_at: app.clock.now(), ..next };
    let detail = json!({"passkey": passkey});
    let entry = app.audit(&actor, None, action, before.name.as_str(), request_id, Some(detail));
    let change = DirectoryChange::UpdateUser(next, expected);
    Ok((app.store.change(change, Some(entry)).await? == ChangeResult::Done).then_some(()))
}
