//! The SMTP conversation without I/O: bytes go in, replies and steps come out.
//!
//! [`SmtpConversation::advance`] reads the input and stops when something must be done that takes time:
//! reading more, a TLS handshake, checking a key, storing a mail. Replies collect in
//! [`SmtpConversation::output`] meanwhile, so a pipelined group is answered in one write. How the bytes are
//! split into pieces makes no difference.

mod commands;
mod receive;

use std::sync::Arc;

use bytes::{Buf, Bytes, BytesMut};
use postway_domain::{EmailAddress, dsn::DsnWishes};

use super::{
    authenticator::{KeylessClient, SmtpCredentials, SmtpDenial},
    body::IncomingMail,
    client_rules::ClientPrivileges,
    command::{self, NamedClient},
    data::DataReader,
    line::{self, BadLine, LineNormalizer},
    login::{self, LoginStage},
    memory_budget::{MailMemoryBudget, MailMemoryShare},
    reply::SubmissionReply,
    scram::{ScramHello, ScramOffer},
};

/// The longest command, including its line ending.
const LINE_OCTETS_MAX: usize = 2_048;
/// The longest line of a login (RFC 4954, 4).
const LOGIN_LINE_OCTETS_MAX: usize = 12_288;
/// The most mistakes of one session; an accepted mail resets the count.
const ERRORS_MAX: u32 = 20;
/// The most wrong keys of one session.
const WRONG_KEYS_MAX: u32 = 3;

/// The rules of a session.
#[derive(Debug)]
pub(super) struct SessionRules {
    pub(super) name: String,
    pub(super) message_bytes_max: usize,
    pub(super) recipients_max: usize,
    /// Whether STARTTLS is offered.
    pub(super) offers_tls: bool,
    /// Whether the server at the other end may name its client by XCLIENT.
    pub(super) takes_xclient: bool,
    /// What the client may do because of where it is.
    pub(super) privileges: ClientPrivileges,
    /// Whether mail comes from other servers: without a key, and only for recipients that are admitted.
    pub(super) is_reception: bool,
}

/// What the caller must do next.
#[derive(Debug)]
pub(super) enum SessionStep {
    /// Write the output, then read more.
    Read,
    /// Write the output, then continue under TLS and drop all other input.
    StartTls,
    /// Find out what the client at [`SmtpConversation::named_client`] may do, and call
    /// [`SmtpConversation::change_client`].
    NewClient,
    /// Look up the keys of [`SmtpConversation::scram_name`], and call [`SmtpConversation::set_scram_offer`].
    LookUp,
    /// Check the key, and call [`SmtpConversation::key_checked`].
    CheckKey,
    /// Ask whether [`SmtpConversation::asked_recipient`] is known, and call
    /// [`SmtpConversation::recipient_judged`].
    AdmitRecipient,
    /// Store the mail, and call [`SmtpConversation::stored`].
    Store(SubmittedMail),
    /// Write the output, then end.
    Close(SessionEnding),
}

/// How a conversation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SessionEnding {
    /// The client sent QUIT.
    Quit,
    /// The client was cut off.
    Cut,
}

/// A complete mail.
#[derive(Debug)]
pub(super) struct SubmittedMail {
    pub(super) envelope: SmtpEnvelope,
    pub(super) body: Bytes,
    /// The number of the mail in its session, from 1.
    pub(super) number: u32,
    /// Its share of the memory budget.
    pub(super) share: MailMemoryShare,
}

/// The sender and the recipients.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SmtpEnvelope {
    pub(super) from: Option<EmailAddress>,
    pub(super) to: Vec<EmailAddress>,
    pub(super) smtputf8: bool,
    /// The delivery reports that are requested.
    pub(super) dsn: DsnWishes,
}

#[derive(Debug)]
enum ConversationStage {
    Command,
    Login(LoginStage),
    Data(DataReader),
    /// A chunk is being read; with a refusal, its octets are dropped.
    Chunk {
        left: u64,
        last: bool,
        refusal: Option<SubmissionReply>,
    },
    /// A name is being looked up.
    LookingUp(ScramHello),
    /// A key is being checked; if it is valid, this reply is sent before the welcome.
    CheckingKey(Option<SubmissionReply>),
    /// TLS is about to begin.
    Securing,
    /// A recipient is being looked up.
    AskingRecipient(EmailAddress),
    /// A server has named its client.
    Renaming,
    /// A mail is being stored.
    Storing,
    Over(SessionEnding),
}

/// The state of a mail that arrives in chunks.
#[derive(Debug)]
enum ChunkState {
    Taken(LineNormalizer),
    /// A chunk was refused, and so are the following ones, until the last one or RSET.
    Spoilt,
}

/// The state of one session.
#[derive(Debug)]
pub(super) struct SmtpConversation {
    rules: SessionRules,
    budget: Arc<MailMemoryBudget>,
    output: Vec<u8>,
    stage: ConversationStage,
    secure: bool,
    greeted_as: Option<String>,
    /// The client that XCLIENT named.
    named: NamedClient,
    /// What the client may do now.
    privileges: ClientPrivileges,
    credentials: Option<SmtpCredentials>,
    /// Whether the credentials were valid.
    admitted: bool,
    envelope: Option<SmtpEnvelope>,
    /// Octets of report requests for the recipients.
    dsn_octets: usize,
    body: Option<IncomingMail>,
    chunks: Option<ChunkState>,
    errors: u32,
    wrong_keys: u32,
    mails: u32,
}

impl SmtpConversation {
    /// A new conversation; the greeting is in its output.
    pub(super) fn new(rules: SessionRules, budget: Arc<MailMemoryBudget>, secure: bool) -> Self {
        let output = format!("220 {} ESMTP Postway\r\n", rules.name).into_bytes();
        let privileges = rules.privileges.clone();
        let credentials = privileges.keyless.clone().map(SmtpCredentials::Keyless);
        Self {
            named: NamedClient::Nobody,
            privileges,
            rules,
            budget,
            output,
            stage: ConversationStage::Command,
            secure,
            greeted_as: None,
            credentials,
            admitted: false,
            envelope: None,
            dsn_octets: 0,
            body: None,
            chunks: None,
            errors: 0,
            wrong_keys: 0,
            mails: 0,
        }
    }

    /// The replies to write. The caller clears them after writing.
    pub(super) fn output(&mut self) -> &mut Vec<u8> {
        &mut self.output
    }

    /// The name that the client gave in its greeting.
    pub(super) fn greeted_as(&self) -> &str {
        self.greeted_as.as_deref().unwrap_or_default()
    }

    /// The credentials of the client.
    pub(super) fn credentials(&self) -> Option<&SmtpCredentials> {
        self.credentials.as_ref()
    }

    /// Whether the client showed a valid key or needs none.
    pub(super) fn is_admitted(&self) -> bool {
        self.admitted || self.privileges.keyless.is_some() || self.rules.is_reception
    }

    pub(super) fn is_secure(&self) -> bool {
        self.secure
    }

    /// Whether a mail is arriving, or a chunk that will be refused: both have a deadline.
    pub(super) fn is_receiving(&self) -> bool {
        self.body.is_some() || matches!(self.stage, ConversationStage::Chunk { .. })
    }

    /// Continues under TLS, as if nothing had been said before (RFC 3207, 4.2).
    pub(super) fn secured(&mut self) {
        self.stage = ConversationStage::Command;
        self.secure = true;
        self.named = NamedClient::Nobody;
        self.privileges = self.rules.privileges.clone();
        self.begin_anew();
    }

    fn begin_anew(&mut self) {
        self.greeted_as = None;
        self.forget_credentials();
        self.forget_mail();
    }

    /// The client that XCLIENT named, if one did.
    pub(super) fn named_client(&self) -> NamedClient {
        self.named
    }

    /// Continues with the client that XCLIENT named, as if it had just connected; `None` if it named none.
    pub(super) fn change_client(&mut self, privileges: Option<ClientPrivileges>) {
        self.stage = ConversationStage::Command;
        self.privileges = privileges.unwrap_or_else(|| self.rules.privileges.clone());
        self.begin_anew();
        self.output.extend_from_slice(format!("220 {} ESMTP Postway\r\n", self.rules.name).as_bytes());
    }

    /// Continues with a client whose certificate is accepted in place of a key.
    pub(super) fn recognize(&mut self, client: Arc<KeylessClient>) {
        self.rules.privileges.keyless = Some(client.clone());
        self.privileges.keyless = Some(client);
        self.forget_credentials();
    }

    fn forget_credentials(&mut self) {
        self.credentials = self.privileges.keyless.clone().map(SmtpCredentials::Keyless);
        self.admitted = false;
    }

    /// The user name whose keys must be looked up.
    pub(super) fn scram_name(&self) -> Option<&str> {
        match &self.stage {
            ConversationStage::LookingUp(hello) => Some(&hello.username),
            _ => None,
        }
    }

    /// Continues a SCRAM login with the data for its user name; `nonce` is the server's half of the nonce.
    pub(super) fn set_scram_offer(&mut self, offer: Result<ScramOffer, SmtpDenial>, nonce: &str) {
        let ConversationStage::LookingUp(hello) =
            std::mem::replace(&mut self.stage, ConversationStage::Command)
        else {
            return;
        };
        match offer {
            Ok(offer) => {
                let (exchange, words) = hello.answer(offer, nonce);
                self.stage = ConversationStage::Login(LoginStage::ScramProof(exchange));
                login::challenge(&words).write(&mut self.output);
            }
            Err(denied) => self.deny(denied),
        }
    }

    /// Ends the conversation with this last reply.
    pub(super) fn end(&mut self, reply: SubmissionReply) {
        self.close(reply, SessionEnding::Cut);
    }

    /// Reads the input until something must be done.
    pub(super) fn advance(&mut self, input: &mut BytesMut) -> SessionStep {
        loop {
            let step = match &mut self.stage {
                ConversationStage::Command | ConversationStage::Login(_) => self.line(input),
                ConversationStage::Data(_) => self.data(input),
                ConversationStage::Chunk { .. } => self.chunk(input),
                ConversationStage::LookingUp(_) => Some(SessionStep::LookUp),
                ConversationStage::CheckingKey(_) => Some(SessionStep::CheckKey),
                ConversationStage::Securing => Some(SessionStep::StartTls),
                ConversationStage::AskingRecipient(_) => Some(SessionStep::AdmitRecipient),
                ConversationStage::Renaming => Some(SessionStep::NewClient),
                ConversationStage::Storing => Some(SessionStep::Read),
                ConversationStage::Over(ending) => Some(SessionStep::Close(*ending)),
            };
            if let Some(step) = step {
                return step;
            }
        }
    }

    /// Continues after a key was checked.
    pub(super) fn key_checked(&mut self, verdict: Result<(), SmtpDenial>) {
        let judging = std::mem::replace(&mut self.stage, ConversationStage::Command);
        match (verdict, judging) {
            (Ok(()), ConversationStage::CheckingKey(Some(words))) => {
                self.stage = ConversationStage::Login(LoginStage::ScramEnd);
                words.write(&mut self.output);
            }
            (Ok(()), _) => self.welcome(),
            (Err(denied), _) => self.deny(denied),
        }
    }

    fn welcome(&mut self) {
        self.admitted = true;
        SubmissionReply::new(235, "2.7.0", "welcome").write(&mut self.output);
    }

    fn deny(&mut self, denied: SmtpDenial) {
        let reply = match denied {
            SmtpDenial::Refused(why) => {
                self.wrong_keys += 1;
                SubmissionReply::with_text(535, "5.7.8", &why)
            }
            SmtpDenial::Later(why) => {
                self.wrong_keys += 1;
                SubmissionReply::with_text(454, "4.7.0", &why)
            }
            SmtpDenial::Unavailable(_) => {
                SubmissionReply::new(454, "4.7.0", "keys cannot be looked up now: try again later")
            }
        };
        self.forget_credentials();
        match self.wrong_keys {
            WRONG_KEYS_MAX.. => self.close(reply, SessionEnding::Cut),
            _ => reply.write(&mut self.output),
        }
    }

    /// The recipient that must be admitted.
    pub(super) fn asked_recipient(&self) -> Option<&EmailAddress> {
        match &self.stage {
            ConversationStage::AskingRecipient(to) => Some(to),
            _ => None,
        }
    }

    /// The envelope sender of the mail under way.
    pub(super) fn sender(&self) -> Option<&EmailAddress> {
        self.envelope.as_ref().and_then(|envelope| envelope.from.as_ref())
    }

    /// Continues after a recipient was admitted or refused.
    pub(super) fn recipient_judged(&mut self, verdict: Result<(), SubmissionReply>) {
        let asked = std::mem::replace(&mut self.stage, ConversationStage::Command);
        match (verdict, asked, &mut self.envelope) {
            (Ok(()), ConversationStage::AskingRecipient(to), Some(envelope)) => {
                envelope.to.push(to);
                SubmissionReply::new(250, "2.1.5", "recipient ok").write(&mut self.output);
            }
            (Ok(()), _, _) => self.answer(OUT_OF_ORDER),
            // A client that guesses addresses is ended by its mistakes.
            (Err(reply), _, _) => self.answer(reply),
        }
    }

    /// Continues after a mail was stored or refused.
    pub(super) fn stored(&mut self, answer: &SubmissionReply) {
        self.stage = ConversationStage::Command;
        if answer.code < 300 {
            self.errors = 0;
        }
        answer.write(&mut self.output);
    }

    fn line(&mut self, input: &mut BytesMut) -> Option<SessionStep> {
        let is_login = matches!(self.stage, ConversationStage::Login(_))
            || input.get(..5).is_some_and(|start| start.eq_ignore_ascii_case(b"AUTH "));
        let limit = if is_login { LOGIN_LINE_OCTETS_MAX } else { LINE_OCTETS_MAX };
        let length = match line::first(input, limit) {
            Ok(Some(length)) => length,
            Ok(None) => return Some(SessionStep::Read),
            Err(bad) => {
                self.close(bad_line(bad), SessionEnding::Cut);
                return None;
            }
        };
        let line = &input[..length];
        match std::mem::replace(&mut self.stage, ConversationStage::Command) {
            ConversationStage::Login(awaited) => self.apply_login(login::resume(awaited, line)),
            _ => match command::parse(line) {
                Ok(command) => self.handle_command(command),
                Err(fault) if fault.is_fatal => self.close(fault.reply, SessionEnding::Cut),
                // A list of recipients may have any number of invalid addresses.
                Err(fault) if fault.reply.code == 553 => fault.reply.write(&mut self.output),
                Err(fault) => self.answer(fault.reply),
            },
        }
        input.advance(length + 2);
        None
    }

    fn forget_mail(&mut self) {
        self.envelope = None;
        self.dsn_octets = 0;
        self.body = None;
        self.chunks = None;
    }

    /// Replies, and ends the session when it has made too many mistakes.
    fn answer(&mut self, reply: SubmissionReply) {
        self.errors += u32::from(reply.is_error());
        reply.write(&mut self.output);
        if reply.is_error() && self.errors >= ERRORS_MAX {
            self.close(SubmissionReply::new(421, "4.7.0", "too many mistakes"), SessionEnding::Cut);
        }
    }

    fn close(&mut self, reply: SubmissionReply, ending: SessionEnding) {
        self.forget_mail();
        reply.write(&mut self.output);
        self.stage = ConversationStage::Over(ending);
    }
}

const OK: SubmissionReply = SubmissionReply::new(250, "2.0.0", "ok");
const EHLO_FIRST: SubmissionReply = SubmissionReply::new(503, "5.5.1", "say EHLO first");
const MAIL_FIRST: SubmissionReply = SubmissionReply::new(503, "5.5.1", "say MAIL first");
const OUT_OF_ORDER: SubmissionReply =
    SubmissionReply::new(503, "5.5.1", "this is not the time for that; RSET begins anew");

fn bad_line(bad: BadLine) -> SubmissionReply {
    match bad {
        BadLine::BareLf => SubmissionReply::new(
            554,
            "5.5.2",
            "bare LF: commands, and the dot that ends a mail, end with CR LF; nothing was taken",
        ),
        BadLine::BareCr => SubmissionReply::new(
            554,
            "5.5.2",
            "bare CR: lines end with CR LF, in mail too; nothing was taken",
        ),
        BadLine::TooLong => SubmissionReply::new(500, "5.5.2", "the line is too long"),
    }
}

fn too_large(bytes_max: usize) -> SubmissionReply {
    SubmissionReply::with_text(552, "5.3.4", &format!("a mail may have {bytes_max} bytes at most"))
}
