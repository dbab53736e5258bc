//! OAuth 2 access tokens for signing in to relays and mailboxes.
//!
//! Dispatch and inbound ask a [`TokenSource`] for a token and report when one was refused. A token comes from
//! memory while it is fresh, from the store if another node has renewed it, and otherwise from the
//! authorization server.
//!
//! Promises:
//! - **One renewal at a time**, over all nodes: the first node records the renewal in the store, with the
//!   version that it read; the others wait for the result, or use a token that is still valid.
//! - **A new refresh token is stored before the access token beside it is used.** A rotated token can be lost
//!   only between the server's response and that commit; nothing else happens in between, and a cancelled
//!   caller does not interrupt it.
//! - **Every wait and every answer is bounded**, and an error contains the server's own text, without
//!   secrets.
//!
//! Functions fail with [`TokenError`], which says whether the grant must change or a retry may help.

mod answer;
mod assertion;
mod crash;
mod error;
pub mod flow;
pub mod oidc;
mod renewal;
mod request;
mod source;
mod token;

pub use error::{TokenError, TokenErrorKind};
pub use source::{OAuthTokens, OwnedGrant, TokenSource};
pub use token::AccessToken;
