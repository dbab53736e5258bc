//! A client for Postway, a durable email gateway.
//!
//! [`GatewayClient`] makes the calls that an application needs, with types, and every other one as JSON by
//! [`GatewayClient::call`]. It repeats what got no answer where that sends nothing twice. [`verify_webhook`]
//! says whether a call was made by the gateway.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use postway_client::{GatewayClient, OutgoingMail};
//!
//! let gateway = GatewayClient::new("http://127.0.0.1:8520", "pw_…")?;
//! let mail = OutgoingMail {
//!     id: Some("order-7".to_owned()),
//!     from: Some("Shop <shop@example.com>".to_owned()),
//!     to: vec!["ada@example.net".to_owned()],
//!     subject: Some("Your order".to_owned()),
//!     text: Some("Thank you.".to_owned()),
//!     ..OutgoingMail::default()
//! };
//! let receipt = gateway.send(&mail).await?; // it is on disk now
//! println!("{}", gateway.message(&receipt.id).await?.status);
//! # Ok(())
//! # }
//! ```

mod body;
mod call;
mod failure;
mod webhook;

pub use body::{
    BatchAnswer, BatchItemAnswer, EventPage, GatewayMessage, ListPage, MailReceipt, OutgoingMail,
};
pub use call::GatewayClient;
pub use failure::{CallFailure, FieldFault, RefusedCall};
pub use webhook::{ForgedCall, SignedCall, verify_webhook};
