//! What tests need besides the code under test: an SMTP sink that misbehaves on demand, certificates, and real databases.
//!
//! Nothing here is linked into the product. All traffic stays on loopback, on ports the system chooses.

pub mod cert;
pub mod mariadb;
pub mod postgres;
pub mod smtp_sink;

pub use cert::{TestCa, TestCert};
pub use smtp_sink::{Action, Hold, ReceivedMail, SinkEvent, SmtpSink, Verb};
