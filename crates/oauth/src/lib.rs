//! OAuth 2: the tokens by which relays and mailboxes are signed in to.
//!
//! Dispatch and inbound ask a [`TokenSource`] for a token and say when one was refused. Where it comes from is decided here:
//! from memory while it is fresh, from the store when another node has renewed it, and from the authorization server
//! otherwise.
//!
//! Promises:
//! - **One renewal at a time**, over all nodes: whoever renews first writes into the store that it does, naming the version
//!   that it read; the others wait for what comes of it, or go on with a token that is still good.
//! - **A new refresh token is stored before the access token beside it is used.** Between the server's answer and that commit
//!   lies the only window in which a rotated token can be lost; it is held open by nothing else, and a caller that goes away
//!   does not interrupt it.
//! - **Every wait and every answer is bounded**, and an error has the server's own words, without secrets.
//!
//! Fails with [`TokenError`], which says whether the grant must change or waiting may help.

mod answer;
mod assertion;
mod crash;
mod error;
pub mod flow;
mod renewal;
mod request;
mod source;
mod token;

pub use error::{TokenError, TokenErrorKind};
pub use source::{GrantOf, OAuthTokens, TokenSource};
pub use token::AccessToken;
