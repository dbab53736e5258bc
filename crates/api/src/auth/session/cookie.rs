//! The cookies of the dashboard: their names, and how they are set and read.
//!
//! Over TLS the names begin with `__Host-`: a browser accepts such a cookie from this host only, with
//! `Secure` and for all paths, so that no neighbour under the same domain can plant one. Without TLS, on this
//! machine, a browser would refuse that name, so the plain name is used.

use axum::http::{HeaderMap, HeaderValue, header, request::Parts};

use crate::{
    auth::is_loopback_host,
    http::{error::ApiError, origin::RequestOrigin},
};

/// The prefix of the names over TLS.
const HOST_PREFIX: &str = "__Host-";
/// The session cookie.
const SESSION: &str = "postway_session";
/// The tenant that an admin's dashboard shows, for requests a browser makes without headers, such as
/// downloads. It is not a secret. The dashboard sets it.
const TENANT: &str = "postway_tenant";
/// Says that a user has signed in with this browser before. It signs nobody in.
const BROWSER: &str = "postway_browser";
/// How long the browser keeps it.
const BROWSER_S: i64 = 365 * 24 * 60 * 60;
/// Carries a sign-in at a provider from its beginning to its end. Unlike the others it comes along when the
/// provider sends the browser back.
const AWAY: &str = "postway_away";
/// How long a sign-in at a provider may take.
pub(super) const AWAY_S: i64 = 10 * 60;
/// The longest cookie that is read.
const COOKIE_BYTES_MAX: usize = 2_048;

/// The sealed session of a request, if it has one.
pub(super) fn sealed(parts: &Parts) -> Option<&str> {
    cookie_value(parts, SESSION)
}

/// The tenant that a signed-in admin's dashboard shows.
pub(crate) fn shown_tenant(parts: &Parts) -> Option<&str> {
    sealed(parts).and(cookie_value(parts, TENANT))
}

/// What says that a user has signed in with this browser before, sealed.
pub(super) fn known_browser(parts: &Parts) -> Option<&str> {
    cookie_value(parts, BROWSER)
}

/// The sign-in at a provider that this browser has begun, sealed.
pub(super) fn away(parts: &Parts) -> Option<&str> {
    cookie_value(parts, AWAY)
}

/// A header that sets the session cookie; zero seconds remove it.
pub(super) fn set(value: &str, seconds: i64, parts: &Parts) -> Result<HeaderValue, ApiError> {
    write(SESSION, value, seconds, "Strict", parts)
}

/// A header that makes this browser a known one.
pub(super) fn set_known_browser(value: &str, parts: &Parts) -> Result<HeaderValue, ApiError> {
    write(BROWSER, value, BROWSER_S, "Strict", parts)
}

/// A header that carries a sign-in at a provider; zero seconds remove it.
pub(super) fn set_away(value: &str, seconds: i64, parts: &Parts) -> Result<HeaderValue, ApiError> {
    write(AWAY, value, seconds, "Lax", parts)
}

fn write(
    name: &str,
    value: &str,
    seconds: i64,
    same_site: &str,
    parts: &Parts,
) -> Result<HeaderValue, ApiError> {
    let (prefix, secure) = if is_secure(parts) { (HOST_PREFIX, "; Secure") } else { ("", "") };
    let text =
        format!("{prefix}{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite={same_site}{secure}");
    HeaderValue::from_str(&text).map_err(|error| ApiError::internal(error.to_string()))
}

/// Whether the cookie is set for TLS only: always, except on this machine without a proxy that uses TLS.
fn is_secure(parts: &Parts) -> bool {
    RequestOrigin::from_parts(parts).is_some_and(|origin| origin.is_https)
        || !is_loopback_host(&parts.headers)
}

/// Over TLS, only a cookie name that no neighbour can set is accepted.
fn cookie_value<'p>(parts: &'p Parts, name: &str) -> Option<&'p str> {
    let guarded = find_cookie(&parts.headers, &format!("{HOST_PREFIX}{name}"));
    guarded.or_else(|| if is_secure(parts) { None } else { find_cookie(&parts.headers, name) })
}

fn find_cookie<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let given = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = given.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let (_, value) = pairs.find(|(found, _)| *found == name)?;
    (!value.is_empty() && value.len() <= COOKIE_BYTES_MAX).then_some(value)
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    fn request(host: &str, cookie: &str) -> Parts {
        Request::get("/").header("host", host).header("cookie", cookie).body(()).unwrap().into_parts().0
    }

    #[test]
    fn the_cookie_is_found_among_others() {
        let found = |value| sealed(&request("localhost", value)).map(ToOwned::to_owned);
        assert_eq!(found("a=b; postway_session=xyz; c=d").as_deref(), Some("xyz"));
        assert_eq!(found("postway_session="), None);
        assert_eq!(found("postway_sessions=xyz"), None);
    }

    #[test]
    fn a_cookie_is_secure_and_bound_to_its_host_everywhere_but_at_home() {
        let written = |parts: &Parts| set("x", 60, parts).unwrap().to_str().unwrap().to_owned();
        let away = written(&request("mail.example.org", ""));
        assert!(away.starts_with("__Host-postway_session=x; Path=/;"), "{away}");
        assert!(away.ends_with("SameSite=Strict; Secure") && !away.contains("Domain"), "{away}");
        for home in ["127.0.0.1:8520", "localhost", "[::1]:8520"] {
            let home = written(&request(home, ""));
            assert!(home.starts_with("postway_session=x;") && home.ends_with("SameSite=Strict"), "{home}");
        }
        // A proxy that does not pass on the host, but says how the client connected.
        let mut parts = request("127.0.0.1:8520", "");
        let address = "192.0.2.1".parse().unwrap();
        parts.extensions.insert(RequestOrigin { address, is_shared: false, is_https: true });
        assert!(written(&parts).starts_with("__Host-postway_session=x;"));
    }

    #[test]
    fn a_neighbours_cookie_is_not_believed_over_tls() {
        let planted = "postway_session=theirs; postway_tenant=theirs";
        assert_eq!(sealed(&request("mail.example.org", planted)), None);
        let both = format!("{planted}; __Host-postway_session=ours; __Host-postway_tenant=our-tenant");
        let parts = request("mail.example.org", &both);
        assert_eq!((sealed(&parts), shown_tenant(&parts)), (Some("ours"), Some("our-tenant")));
        let half = format!("{planted}; __Host-postway_session=ours");
        assert_eq!(shown_tenant(&request("mail.example.org", &half)), None);
        assert_eq!(shown_tenant(&request("localhost", planted)), Some("theirs"));
    }
}
