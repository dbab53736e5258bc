//! The Mailgun API, as far as mail is sent by it: `POST /v3/{domain}/messages` and `…/messages.mime`.
//!
//! Calls are forms. With recipient variables each address in `to` gets a message of its own, and all of them
//! are accepted or none. The id in the answer is the first message's Message-ID. The domain in the path says
//! nothing here: the author decides. As there, unknown fields are ignored; an option that would change what is
//! sent and cannot be honoured here is refused.

mod error;
mod form;
mod message;
mod option;
mod recipient_variables;
mod send;

use axum::{
    extract::Request,
    http::{HeaderValue, header},
    middleware::{self, Next},
    response::Response,
};
use base64::{Engine, prelude::BASE64_STANDARD};

use super::{ErrorStyle, routes::CompatRoutes};

/// How this API takes keys and formats errors.
pub(super) const ERROR_STYLE: ErrorStyle = ErrorStyle { key_header: "x-api-key", refuse: error::refuse };

/// The routes of this API.
pub(super) fn routes() -> CompatRoutes {
    CompatRoutes::default()
        .post("/v3/{domain}/messages", send::send)
        .post("/v3/{domain}/messages.mime", send::send_ready_made)
        .around(|router| router.route_layer(middleware::from_fn(read_password)))
}

/// Takes a key that is the password of `Authorization: Basic`, whatever the user is called; there it is `api`.
async fn read_password(mut request: Request, next: Next) -> Response {
    let given = request.headers().get(header::AUTHORIZATION).and_then(|value| password(value.as_bytes()));
    if let Some(key) = given {
        request.headers_mut().insert(header::AUTHORIZATION, key);
    }
    next.run(request).await
}

/// The password as a bearer's key, if the header has one.
fn password(value: &[u8]) -> Option<HeaderValue> {
    let (scheme, encoded) = value.split_at_checked("Basic ".len())?;
    let pair =
        scheme.eq_ignore_ascii_case(b"Basic ").then(|| BASE64_STANDARD.decode(encoded.trim_ascii()))?.ok()?;
    let colon = pair.iter().position(|byte| *byte == b':')?;
    let mut bearer = HeaderValue::from_bytes(&[b"Bearer ", &pair[colon + 1..]].concat()).ok()?;
    bearer.set_sensitive(true);
    Some(bearer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_password_is_the_key() {
        let basic = |pair: &str| format!("basic {}", BASE64_STANDARD.encode(pair));
        assert_eq!(password(basic("api:pw_1:2").as_bytes()).unwrap(), "Bearer pw_1:2");
        assert!(password(b"Bearer x").is_none() && password(b"Basic !").is_none() && password(b"").is_none());
        assert!(
            password(basic("api").as_bytes()).is_none() && password(basic("a:\r\nb").as_bytes()).is_none()
        );
    }
}
