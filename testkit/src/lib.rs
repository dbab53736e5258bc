//! What tests need besides the code under test: an SMTP sink that misbehaves on demand, certificates, real databases and a
//! service that speaks SES.
//!
//! Nothing here is linked into the product. All traffic stays on loopback, on ports the system chooses.

pub mod cable;
pub mod cert;
pub mod galera;
mod installed;
pub mod mariadb;
pub mod moto;
pub mod postgres;
pub mod smtp_sink;

pub use cable::Cable;
pub use cert::{TestCa, TestCert};
pub use smtp_sink::{Action, Hold, ReceivedMail, SinkEvent, SmtpSink, Verb};
