//! Reception: mail that other servers deliver to us by SMTP, for addresses that belong to a mailbox.
//!
//! It needs no mail account: a mailbox with `addresses` gets its mail here. What is kept becomes inbound mail in
//! the store, and goes the same way as mail from a watched folder: it is recognised, matched, shown to rules,
//! reported.
//!
//! Promises:
//! - A recipient is known before the mail is read. Nobody else's mail is taken, so nothing is ever relayed. An
//!   envelope sender that we signed is known only if its signature holds ([`directory`]).
//! - 250 means that the mail is durable in every mailbox it is for; the same mail, delivered again because the
//!   250 was lost, is there once.
//! - It never makes a report of its own: it refuses while the sending server still listens, or keeps the mail.
//! - Who sent a mail is checked (SPF, DKIM, DMARC) in bounded time, and written above everything the sender
//!   wrote. The result decides only if the operator wishes so.
//! - Clients are bounded by address and network ([`client_rate`]), besides the limits of the listener.
//!
//! While the store is away the answer is 451, and the sending server keeps the mail.

mod client_rate;
mod directory;
mod registrar;
mod sender_check;
mod trace;

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use aws_lc_rs::digest;
use bytes::Bytes;
use postway_domain::{Clock, EmailAddress, Time, WatchedMailbox, secret::SecretKey, verp::VerpKey};
use postway_intake::smtp::{ReceptionClient, ReceptionDesk, ReceptionMail, SubmissionReply};
use postway_store::{Store, StoreError, blob::BlobStorage, record::MailboxKey};

pub use sender_check::{SenderCheck, SenderVerdict, SystemSenderCheck};

use self::{
    client_rate::ClientRate,
    directory::{ReceptionDirectory, RecipientJudgement},
    registrar::MailRegistrar,
    trace::trace_fields,
};

/// The most servers that a mail may have passed (RFC 5321, 6.3).
const HOPS_MAX: usize = 100;

const UNKNOWN: SubmissionReply = SubmissionReply::new(550, "5.1.1", "nobody of this name is here");
const NOT_STORED: SubmissionReply =
    SubmissionReply::new(451, "4.3.0", "the mail could not be stored and was not taken: try again later");
const PAUSED: SubmissionReply =
    SubmissionReply::new(450, "4.2.1", "this mailbox takes no mail now: try again later");
const TOO_FAST: SubmissionReply =
    SubmissionReply::new(450, "4.7.0", "too much mail comes from your network: try again later");
const TOO_MANY_HOPS: SubmissionReply =
    SubmissionReply::new(554, "5.4.6", "this mail has been through too many servers: it goes in a circle");
const UNAUTHENTICATED: SubmissionReply =
    SubmissionReply::new(550, "5.7.1", "the domain of its author asks to refuse this mail (DMARC)");

/// What the reception is made of.
pub struct ReceptionParts {
    /// The store.
    pub store: Arc<dyn Store>,
    /// The storage of large mail.
    pub depot: Arc<BlobStorage>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Verifies the envelope senders that we signed.
    pub secret_key: Arc<SecretKey>,
    /// Checks who sent a mail.
    pub sender_check: Arc<dyn SenderCheck>,
    /// The name of this server.
    pub name: String,
    /// The largest mail, in bytes.
    pub mail_bytes_max: usize,
    /// The most mails of one client address in a minute.
    pub mails_per_minute_max: u32,
    /// Whether mail that fails DMARC is refused if its author's domain asks for that.
    pub refuses_by_dmarc: bool,
}

/// The desk of the reception.
pub struct Reception {
    directory: ReceptionDirectory,
    registrar: MailRegistrar,
    rate: ClientRate,
    clock: Arc<dyn Clock>,
    sender_check: Arc<dyn SenderCheck>,
    name: String,
    mail_bytes_max: usize,
    refuses_by_dmarc: bool,
}

impl Reception {
    /// A reception on this store.
    pub fn new(parts: ReceptionParts) -> Self {
        let ReceptionParts { store, depot, clock, secret_key, sender_check, name, .. } = parts;
        Self {
            directory: ReceptionDirectory::new(store.clone(), VerpKey::new(&secret_key)),
            registrar: MailRegistrar::new(store, depot, clock.clone()),
            rate: ClientRate::new(parts.mails_per_minute_max),
            clock,
            sender_check,
            name,
            mail_bytes_max: parts.mail_bytes_max,
            refuses_by_dmarc: parts.refuses_by_dmarc,
        }
    }

    /// The mailboxes of these recipients, each with its recipients.
    async fn mailboxes(
        &self,
        to: &[EmailAddress],
    ) -> Result<Vec<(WatchedMailbox, Vec<String>)>, SubmissionReply> {
        let mut found: BTreeMap<MailboxKey, (WatchedMailbox, Vec<String>)> = BTreeMap::new();
        for address in to {
            // It was admitted, and may have been removed since.
            match self.directory.judge(address).await.map_err(unavailable)? {
                RecipientJudgement::Unknown => return Err(UNKNOWN),
                RecipientJudgement::Paused => return Err(PAUSED),
                RecipientJudgement::Known(mailbox) => {
                    let key = MailboxKey { tenant: mailbox.tenant.clone(), mailbox: mailbox.id.clone() };
                    let (_, recipients) = found.entry(key).or_insert_with(|| (*mailbox, Vec::new()));
                    recipients.push(address.as_str().to_owned());
                }
            }
        }
        Ok(found.into_values().collect())
    }

    async fn take(&self, mail: ReceptionMail) -> Result<String, SubmissionReply> {
        if hops(&mail.body) > HOPS_MAX {
            return Err(TOO_MANY_HOPS);
        }
        let now = self.clock.now();
        let mailboxes = self.mailboxes(&mail.to).await?;
        let largest = mailboxes.iter().map(|(mailbox, _)| mailbox.settings.mail_bytes_max()).min();
        if let Some(largest) = largest.filter(|largest| mail.body.len() > *largest) {
            let why = format!("this mailbox takes mail of at most {largest} bytes");
            return Err(SubmissionReply::with_text(552, "5.3.4", &why));
        }
        let verdict = self.sender_check.check(&mail).await;
        if verdict.is_to_be_refused && self.refuses_by_dmarc {
            return Err(UNAUTHENTICATED);
        }
        let id = format!("reception-{}-{}", mail.client.session, mail.number);
        for (mailbox, mut recipients) in mailboxes {
            recipients.sort();
            recipients.dedup();
            let digest = digest_of(&mail, &recipients);
            let fields = trace_fields(&mail, &recipients, &verdict, &self.name, &id, now);
            let raw = Bytes::from([fields.as_bytes(), &mail.body].concat());
            self.registrar.register(&mailbox, raw, digest).await.map_err(unavailable)?;
        }
        Ok(id)
    }
}

#[async_trait]
impl ReceptionDesk for Reception {
    fn mail_bytes_max(&self) -> usize {
        self.mail_bytes_max
    }

    async fn admit_recipient(
        &self,
        client: &ReceptionClient,
        _from: Option<&EmailAddress>,
        to: &EmailAddress,
    ) -> Result<(), SubmissionReply> {
        if !self.rate.takes(client.peer, self.clock.now()) {
            return Err(TOO_FAST);
        }
        match self.directory.judge(to).await.map_err(unavailable)? {
            RecipientJudgement::Known(_) => Ok(()),
            RecipientJudgement::Paused => Err(PAUSED),
            RecipientJudgement::Unknown => Err(UNKNOWN),
        }
    }

    async fn keep(&self, mail: ReceptionMail) -> SubmissionReply {
        match self.take(mail).await {
            Ok(id) => SubmissionReply::with_text(250, "2.0.0", &format!("Ok: kept as {id}")),
            Err(reply) => reply,
        }
    }
}

fn unavailable(error: StoreError) -> SubmissionReply {
    tracing::warn!(%error, "mail from another server was not taken: the store does not take it");
    NOT_STORED
}

/// What a mail is recognised by when it is delivered again: the envelope and the bytes, without our own fields.
fn digest_of(mail: &ReceptionMail, recipients: &[String]) -> [u8; 32] {
    let mut hash = digest::Context::new(&digest::SHA256);
    let from = mail.from.as_ref().map_or("", |from| from.as_str());
    for part in std::iter::once(from).chain(recipients.iter().map(String::as_str)) {
        hash.update(&(part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    hash.update(&mail.body);
    let mut digest = [0; 32];
    digest.copy_from_slice(hash.finish().as_ref());
    digest
}

/// The number of trace fields: one for each server that the mail passed.
fn hops(mail: &[u8]) -> usize {
    let header = mail.split(|byte| *byte == b'\n').take_while(|line| !line.trim_ascii().is_empty());
    let is_trace = |line: &&[u8]| line.get(..9).is_some_and(|start| start.eq_ignore_ascii_case(b"received:"));
    header.filter(is_trace).take(HOPS_MAX + 1).count()
}

/// The time in seconds, for trace fields.
fn unix_seconds(at: Time) -> i64 {
    at.as_seconds()
}
