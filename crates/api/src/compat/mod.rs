//! Compatibility APIs: the routes of other systems, translated to ours.
//!
//! Each API has its own prefix (`/compat/001`, `/compat/resend`, …), and one of them may also be at `/`. An
//! API only translates: it reads its users' JSON, writes ours, hands that to the intake, and describes the
//! result in its users' terms. What is checked, stored and sent is decided by the intake.
//!
//! Promises: every error has the format of the API it came through, including panics, unknown paths and large
//! bodies; a key is accepted in the API's own header as well as in ours; a faulty field is named as that API
//! names it. A disabled API is 404, as if it did not exist.

mod api_name;
mod error_style;
mod expansion;
mod lookup;
mod mail_headers;
mod mailgun;
mod message_list;
mod placeholder;
mod postmark;
mod reference_000;
mod reference_001;
mod reference_004;
mod resend;
mod routes;
mod sendgrid;
mod shown_content;
mod stored_request;
mod translate;
mod unmatched;

use axum::Router;

pub use api_name::{CompatApi, CompatConfig, UnknownCompatApi};
pub use routes::CompatRoute;
pub use stored_request::{ForeignRowKind, REQUEST_ID, foreign_field_name, translate_row};
pub(crate) use unmatched::UnmatchedRoutes;

use self::routes::CompatRoutes;
use crate::{http::error_style::ErrorStyle, state::SharedState};

/// The routes of every enabled API, each under its prefix, and the chosen one at `/`.
pub(crate) fn routes(config: &CompatConfig) -> Router<SharedState> {
    let names = config.doors.iter().flat_map(|api| api.names().map(|name| (*api, name)));
    let nested = names.fold(Router::new(), |router, (api, name)| {
        let (CompatRoutes { router: bare, .. }, style) = routes_of(api);
        let prefix = format!("/compat/{name}");
        let bare_prefix = error_style::bare_prefix(style);
        router.nest(&prefix, error_style::under_prefix(bare, style)).route(&format!("{prefix}/"), bare_prefix)
    });
    match config.root {
        None => nested,
        Some(api) => {
            let (CompatRoutes { router: bare, .. }, style) = routes_of(api);
            nested.merge(error_style::at_root(bare, style))
        }
    }
}

/// The routes of an API, and how it takes keys and formats errors.
fn routes_of(api: CompatApi) -> (CompatRoutes, &'static ErrorStyle) {
    match api {
        CompatApi::Outbox => (reference_000::routes(), &reference_000::ERROR_STYLE),
        CompatApi::Proxy => (reference_001::routes(), &reference_001::ERROR_STYLE),
        CompatApi::Pipeline => (reference_004::routes(), &reference_004::ERROR_STYLE),
        CompatApi::Resend => (resend::routes(), &resend::ERROR_STYLE),
        CompatApi::Postmark => (postmark::routes(), &postmark::ERROR_STYLE),
        CompatApi::SendGrid => (sendgrid::routes(), &sendgrid::ERROR_STYLE),
        CompatApi::Mailgun => (mailgun::routes(), &mailgun::ERROR_STYLE),
    }
}

/// Every route of every compatibility API.
pub fn compat_routes() -> Vec<CompatRoute> {
    let of_api = |api| {
        routes_of(api).0.listed.into_iter().map(move |(method, path)| CompatRoute { door: api, method, path })
    };
    CompatApi::ALL.into_iter().flat_map(of_api).collect()
}
