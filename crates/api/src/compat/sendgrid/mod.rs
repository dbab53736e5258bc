//! The SendGrid API, as far as mail is sent by it: `POST /v3/mail/send`.
//!
//! A personalization is a message, and all personalizations of a call are accepted or none. The id in the
//! answer is the first message's uid. As there, unknown fields are ignored; a field that would change what is
//! sent and cannot be honoured here is refused.

mod error;
mod mail;
mod part;
mod personalization;
mod send;

use super::{ErrorStyle, routes::CompatRoutes};

/// How this API takes keys and formats errors.
pub(super) const ERROR_STYLE: ErrorStyle = ErrorStyle { key_header: "x-api-key", refuse: error::refuse };

/// The routes of this API.
pub(super) fn routes() -> CompatRoutes {
    CompatRoutes::default().post("/v3/mail/send", send::send)
}
