//! Reception: mail from other servers, without a login, for addresses of our own. The binary gives the desk
//! that decides.
//!
//! The receiver is that of submission: the same rules about lines, sizes, memory and deadlines. What differs
//! is who may send (anybody) and to whom (only recipients that the desk knows, asked before the mail is
//! read). Nothing is relayed: the desk keeps mail or refuses it, and never makes a report of its own.

use std::net::IpAddr;

use bytes::Bytes;
use postway_domain::EmailAddress;

use super::{
    conversation::{SmtpConversation, SubmittedMail},
    reply::{NO_ROOM, SubmissionReply},
};

/// The client of a session.
#[derive(Clone, Debug)]
pub struct ReceptionClient {
    /// Its address.
    pub peer: IpAddr,
    /// The name that it gave, as given.
    pub greeted_as: String,
    /// Whether TLS is on.
    pub secure: bool,
    /// The id of the session.
    pub session: String,
}

/// A complete mail from another server.
#[derive(Debug)]
pub struct ReceptionMail {
    /// Who delivered it.
    pub client: ReceptionClient,
    /// The envelope sender; `None` for the null sender.
    pub from: Option<EmailAddress>,
    /// The recipients, each admitted by the desk.
    pub to: Vec<EmailAddress>,
    /// Whether addresses may contain characters outside ASCII.
    pub smtputf8: bool,
    /// The bytes.
    pub body: Bytes,
    /// The number of the mail in its session, from 1.
    pub number: u32,
}

/// Decides about mail from other servers.
#[async_trait::async_trait]
pub trait ReceptionDesk: Send + Sync {
    /// The largest mail, in bytes.
    fn mail_bytes_max(&self) -> usize;

    /// Admits a recipient, or says why not.
    async fn admit_recipient(
        &self,
        client: &ReceptionClient,
        from: Option<&EmailAddress>,
        to: &EmailAddress,
    ) -> Result<(), SubmissionReply>;

    /// Keeps a mail. The reply is 250 only if the mail is durable for every recipient.
    async fn keep(&self, mail: ReceptionMail) -> SubmissionReply;
}

/// The client as a desk sees it.
pub(super) fn client(
    conversation: &SmtpConversation,
    peer: std::net::SocketAddr,
    session: &str,
) -> ReceptionClient {
    ReceptionClient {
        peer: peer.ip().to_canonical(),
        greeted_as: conversation.greeted_as().to_owned(),
        secure: conversation.is_secure(),
        session: session.to_owned(),
    }
}

/// Hands a complete mail to the desk. Its share of the memory is held until the mail is kept. The mail counts
/// twice, because the desk writes fields above it.
pub(super) async fn keep(
    desk: &dyn ReceptionDesk,
    client: ReceptionClient,
    submission: SubmittedMail,
) -> SubmissionReply {
    let SubmittedMail { envelope, body, number, mut share } = submission;
    let (from, to, smtputf8) = (envelope.from, envelope.to, envelope.smtputf8);
    let reply = match share.cover(2 * body.len()) {
        true => desk.keep(ReceptionMail { client, from, to, smtputf8, body, number }).await,
        false => NO_ROOM,
    };
    drop(share);
    let outcome = match reply.code {
        ..300 => "accepted",
        300..500 => "deferred",
        500.. => "refused",
    };
    metrics::counter!("postway_reception_mails_total", "outcome" => outcome).increment(1);
    reply
}
