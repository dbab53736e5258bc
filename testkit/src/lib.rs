//! What tests need besides the code under test: an SMTP sink that misbehaves on demand, and certificates.
//!
//! Nothing here is linked into the product. All traffic stays on loopback, on ports the system chooses.

pub mod cert;
pub mod smtp_sink;

pub use cert::{TestCa, TestCert};
pub use smtp_sink::{Action, Hold, ReceivedMail, SinkEvent, SmtpSink, Verb};
