//! Invitations: how a person first gets a password and an authenticator app here, a passkey, or new ones.
//!
//! An invitation is a sealed text that an admin passes on. It names the user and the number of the
//! invitation, so that only the latest works, and only once: accepting it counts as one, too. Between the two
//! steps of accepting, the new secret travels in a sealed text as well, so nothing is stored that nobody
//! confirmed.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use postway_domain::{
    Time, User,
    id::UserId,
    secret::{SealedSecret, SecretKey},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::http::error::ApiError;

/// How long an invitation works.
pub(crate) const LASTS_MS: i64 = 7 * 24 * 60 * 60 * 1_000;
/// How long the second step may take.
const CONFIRM_MS: i64 = 60 * 60 * 1_000;
/// The longest sealed text that is opened.
const CHARS_MAX: usize = 2_048;
/// The purposes that texts are sealed for.
const INVITATION: &str = "invitation";
const ENROLLMENT: &str = "enrollment";

/// The content of an invitation.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct UserInvitation {
    /// The user.
    pub(crate) user: UserId,
    /// Which of the user's invitations it is.
    number: i64,
    /// Until when it works.
    pub(crate) until: Time,
}

impl UserInvitation {
    /// The latest invitation of this user.
    pub(crate) fn of(user: &User, now: Time) -> Self {
        let until = Time::from_millis(now.as_millis().saturating_add(LASTS_MS));
        Self { user: user.id, number: user.credentials.invitations, until }
    }

    /// Whether it works for this user now.
    pub(crate) fn fits(&self, user: &User, now: Time) -> bool {
        self.user == user.id
            && self.number == user.credentials.invitations
            && now < self.until
            && user.disabled_at.is_none()
    }

    /// The text to pass on.
    pub(crate) fn seal(&self, secret_key: &SecretKey) -> Result<String, ApiError> {
        seal(secret_key, INVITATION, self)
    }

    /// Reads a text that was passed on.
    pub(crate) fn open(secret_key: &SecretKey, text: &str) -> Option<Self> {
        open(secret_key, INVITATION, text)
    }
}

/// What is to be confirmed in the second step.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct UserEnrollment {
    /// The invitation that was accepted; it lasts as long as the second step may take.
    pub(crate) invitation: UserInvitation,
    /// The authenticator app's secret, in base32.
    pub(crate) totp: String,
    /// What the device signs if the user takes a passkey instead.
    pub(crate) challenge: String,
}

impl UserEnrollment {
    /// The second step for this invitation.
    pub(crate) fn of(invitation: UserInvitation, totp: String, challenge: String, now: Time) -> Self {
        let until = Time::from_millis(now.as_millis().saturating_add(CONFIRM_MS)).min(invitation.until);
        Self { invitation: UserInvitation { until, ..invitation }, totp, challenge }
    }

    /// The text for the page.
    pub(crate) fn seal(&self, secret_key: &SecretKey) -> Result<String, ApiError> {
        seal(secret_key, ENROLLMENT, self)
    }

    /// Reads the text that the page sends back.
    pub(crate) fn open(secret_key: &SecretKey, text: &str) -> Option<Self> {
        open(secret_key, ENROLLMENT, text)
    }
}

/// Seals a value for one purpose, as a text for cookies and links.
pub(crate) fn seal(secret_key: &SecretKey, place: &str, value: &impl Serialize) -> Result<String, ApiError> {
    let text = serde_json::to_string(value).map_err(ApiError::internal)?;
    Ok(BASE64_URL_SAFE_NO_PAD.encode(secret_key.seal(place, &text).map_err(ApiError::internal)?.0))
}

/// Opens what was sealed for this purpose.
pub(crate) fn open<T: DeserializeOwned>(secret_key: &SecretKey, place: &str, text: &str) -> Option<T> {
    if text.len() > CHARS_MAX {
        return None;
    }
    let sealed = SealedSecret(BASE64_URL_SAFE_NO_PAD.decode(text).ok()?);
    serde_json::from_str(&secret_key.open(place, &sealed).ok()?).ok()
}
