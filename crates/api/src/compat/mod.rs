//! Doors that users already know: the routes of other systems, translated to ours.
//!
//! Each door lives under its own prefix (`/compat/001`, `/compat/resend`, …), and one of them may be at `/` too. A door
//! is translation and nothing else: it reads its users' JSON, writes ours, hands that to the one intake, and says what
//! came of it in its users' words. What is checked, stored and sent is decided behind it.
//!
//! Promises: every error leaves in the shape of the door it came by, panics, unknown paths and large bodies included; a key is
//! taken from the door's own header as well as from ours; what is refused is named by the field's name in that door.
//! A door that is switched off is 404, as if there were none.

mod api_name;
mod error_style;
mod lookup;
mod message_list;
mod postmark;
mod reference_000;
mod reference_001;
mod reference_004;
mod resend;
mod routes;
mod shown_content;
mod stored_request;
mod translate;
mod unmatched;

use axum::Router;

pub use api_name::{CompatConfig, DoorName, UnknownDoor};
pub(crate) use error_style::Dress;
pub use routes::CompatRoute;
pub use stored_request::{OldKind, REQUEST_ID, in_our_words, in_their_words};
pub(crate) use unmatched::Unmatched;

use self::routes::DoorRoutes;
use crate::state::Shared;

/// The routes of every door that is open, each under its prefix, and the chosen one at `/`.
pub(crate) fn routes(config: &CompatConfig) -> Router<Shared> {
    let nested = config.doors.iter().fold(Router::new(), |router, door| {
        let (DoorRoutes { router: bare, .. }, dress) = of(*door);
        let prefix = format!("/compat/{door}");
        let nowhere = error_style::nowhere(dress);
        router.nest(&prefix, error_style::under_prefix(bare, dress)).route(&format!("{prefix}/"), nowhere)
    });
    match config.root {
        None => nested,
        Some(door) => {
            let (DoorRoutes { router: bare, .. }, dress) = of(door);
            nested.merge(error_style::at_root(bare, dress))
        }
    }
}

/// A door's routes, and how it takes keys and words errors.
fn of(door: DoorName) -> (DoorRoutes, &'static Dress) {
    match door {
        DoorName::Reference000 => (reference_000::routes(), &reference_000::DRESS),
        DoorName::Reference001 => (reference_001::routes(), &reference_001::DRESS),
        DoorName::Reference004 => (reference_004::routes(), &reference_004::DRESS),
        DoorName::Resend => (resend::routes(), &resend::DRESS),
        DoorName::Postmark => (postmark::routes(), &postmark::DRESS),
    }
}

/// Every route of every door, as the doors themselves have them.
pub fn compat_routes() -> Vec<CompatRoute> {
    let of_door =
        |door| of(door).0.listed.into_iter().map(move |(method, path)| CompatRoute { door, method, path });
    DoorName::ALL.into_iter().flat_map(of_door).collect()
}
