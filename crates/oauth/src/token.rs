//! Tokens in memory, and in the form that is encrypted and stored.

use std::{fmt, time::Duration};

use postway_domain::Time;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};

/// How long before its expiry a token is renewed: long enough to survive a short outage of the server.
const EARLY: Duration = Duration::from_secs(5 * 60);
/// The assumed lifetime of a token if the server does not state it.
const LIFETIME_DEFAULT: Duration = Duration::from_secs(10 * 60);
/// The longest accepted lifetime of a token, whatever the server states.
const LIFETIME_MAX: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// A token that is refused this soon after it was issued is not renewed: another one would be refused as
/// well.
const YOUNG: Duration = Duration::from_secs(60);

/// An access token. Never printed.
#[derive(Clone)]
pub struct AccessToken {
    text: SecretString,
    obtained_at: Time,
    expires_at: Time,
}

impl fmt::Debug for AccessToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AccessToken(hidden, until {})", self.expires_at)
    }
}

impl AccessToken {
    /// A token that was issued at `obtained_at` for `lifetime`.
    pub(crate) fn new(text: String, obtained_at: Time, lifetime: Option<Duration>) -> Self {
        let lifetime = lifetime.unwrap_or(LIFETIME_DEFAULT).min(LIFETIME_MAX);
        Self { text: text.into(), obtained_at, expires_at: obtained_at.plus(lifetime) }
    }

    /// A fixed token without a known expiry.
    pub(crate) fn given(text: SecretString) -> Self {
        let never = Time::from_millis(i64::MAX);
        Self { text, obtained_at: Time::from_millis(0), expires_at: never }
    }

    /// The token itself.
    pub fn expose(&self) -> &str {
        self.text.expose_secret()
    }

    /// How long it is still valid.
    pub fn left(&self, now: Time) -> Duration {
        self.expires_at.since(now)
    }

    pub(crate) fn is(&self, other: &Self) -> bool {
        self.expose() == other.expose()
    }

    /// Whether it is valid for long enough not to be renewed yet.
    pub(crate) fn is_fresh(&self, now: Time) -> bool {
        let lifetime = self.expires_at.since(self.obtained_at);
        now < self.expires_at.minus(EARLY.min(lifetime / 5))
    }

    pub(crate) fn is_expired(&self, now: Time) -> bool {
        now >= self.expires_at
    }

    pub(crate) fn is_young(&self, now: Time) -> bool {
        now.since(self.obtained_at) < YOUNG
    }
}

/// The tokens of a grant, as they are stored.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct StoredTokens {
    /// The fingerprint of the grant: the access token of another grant cannot be used.
    fingerprint: String,
    /// The consent that they come from: the refresh token of another consent cannot be used, either.
    consent: String,
    access_token: String,
    obtained_at_ms: i64,
    expires_at_ms: i64,
    /// The current refresh token, if it is not the one in the grant's settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) refresh_token: Option<String>,
}

impl StoredTokens {
    pub(crate) fn new(
        (fingerprint, consent): (&str, &str),
        token: &AccessToken,
        refresh_token: Option<String>,
    ) -> Self {
        Self {
            fingerprint: fingerprint.to_owned(),
            consent: consent.to_owned(),
            access_token: token.expose().to_owned(),
            obtained_at_ms: token.obtained_at.as_millis(),
            expires_at_ms: token.expires_at.as_millis(),
            refresh_token,
        }
    }

    /// The tokens that are valid for a grant. If the grant has changed under the same consent, the access
    /// token counts as expired and the refresh token stays valid.
    pub(crate) fn for_grant(self, fingerprint: &str, consent: &str) -> Option<Self> {
        let expires_at_ms = if self.fingerprint == fingerprint { self.expires_at_ms } else { 0 };
        (self.consent == consent).then_some(Self { expires_at_ms, ..self })
    }

    pub(crate) fn is_newer_than(&self, other: &Self) -> bool {
        self.obtained_at_ms > other.obtained_at_ms
    }

    pub(crate) fn access(&self) -> AccessToken {
        AccessToken {
            text: self.access_token.clone().into(),
            obtained_at: Time::from_millis(self.obtained_at_ms),
            expires_at: Time::from_millis(self.expires_at_ms),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_renewed_before_its_end_whatever_its_length() {
        let at = |seconds: i64| Time::from_millis(seconds * 1_000);
        let token = |lifetime| AccessToken::new("t".to_owned(), at(0), lifetime);
        let hour = token(Some(Duration::from_secs(3_600)));
        assert!(hour.is_fresh(at(3_299)) && !hour.is_fresh(at(3_300)) && !hour.is_expired(at(3_599)));
        let minute = token(Some(Duration::from_secs(60)));
        assert!(minute.is_fresh(at(47)) && !minute.is_fresh(at(48)));
        assert!(token(None).is_fresh(at(479)) && !token(None).is_fresh(at(480)));
        assert!(token(Some(Duration::ZERO)).is_expired(at(0)));
        assert!(token(Some(Duration::from_secs(u64::MAX))).is_expired(at(31 * 86_400)));
        assert!(!format!("{hour:?}").contains("\"t\""));
    }
}
