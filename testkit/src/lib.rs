//! What tests need besides the code under test: an SMTP sink that misbehaves on demand, certificates, real
//! databases, a service that speaks SES and an independent verifier of DKIM signatures.
//!
//! Nothing here is linked into the product. All traffic stays on loopback, on ports the system chooses.

pub mod accessibility;
mod cache;
pub mod cert;
pub mod clamd;
pub mod clients;
pub mod closed_port;
pub mod disk;
pub mod dkimpy;
pub mod dovecot;
pub mod egress_proxy;
pub mod front_proxy;
pub mod galera;
pub mod http2_client;
pub mod http_source;
pub mod imap_sink;
mod invitation;
pub mod mariadb;
pub mod moto;
pub mod name_server;
pub mod node;
pub mod oidc;
pub mod otlp_collector;
pub mod own_clients;
mod package;
pub mod postfix;
pub mod postgres;
pub mod postgres_pair;
mod python;
pub mod python_clients;
pub mod schema_tools;
pub mod smtp_sink;
pub mod tcp_proxy;

pub use cert::{TestCa, TestCert};
pub use clients::{ClientScript, MailClients, OpenApiTools};
pub use closed_port::ClosedPort;
pub use disk::{DiskFault, DiskLog, Unsynced, WatchedDisk};
pub use dkimpy::Dkimpy;
pub use dovecot::Dovecot;
pub use egress_proxy::{EgressProxy, ProxyManner};
pub use front_proxy::FrontProxy;
pub use http_source::{HttpSource, SourceReply};
pub use http2_client::{Http2Answer, Http2Client};
pub use imap_sink::{ImapAct, ImapSink};
pub use invitation::read_invitation;
pub use name_server::NameServer;
pub use node::NodeJs;
pub use oidc::OidcServer;
pub use otlp_collector::{CollectedSpan, OtlpCollector};
pub use own_clients::ClientTools;
pub use postfix::Postfix;
pub use python_clients::PythonClients;
pub use schema_tools::SchemaTools;
pub use smtp_sink::{ReceivedMail, SinkAction, SinkEvent, SinkPause, SinkVerb, SmtpSink};
pub use tcp_proxy::TcpProxy;
