//! The conversation, without I/O: bytes in, replies and steps out.
//!
//! [`Conversation::advance`] reads what has come and stops where something must be done that takes time: reading more, a
//! TLS handshake, judging a key, storing a mail. Replies gather in [`Conversation::output`] meanwhile, so a pipelined
//! group is answered in one write. The pieces in which the bytes come change nothing.

mod commands;
mod receive;

use std::sync::Arc;

use bytes::{Buf, Bytes, BytesMut};
use postway_domain::{EmailAddress, dsn::DsnWishes};

use super::{
    authenticator::{Denied, OpenNetwork, SmtpCredentials},
    body::Body,
    command,
    data::DataReader,
    line::{self, BadLine, Normalizer},
    login::{self, Awaited},
    memory_budget::{Budget, Share},
    reply::Reply,
    scram::{ScramHello, ScramOffer},
};

/// The longest command with its ending.
const LINE_OCTETS_MAX: usize = 2_048;
/// The longest line of a login (RFC 4954, 4).
const LOGIN_LINE_OCTETS_MAX: usize = 12_288;
/// Mistakes of one session; a mail that is taken makes up for them.
const ERRORS_MAX: u32 = 20;
/// Keys of one session that do not open.
const WRONG_KEYS_MAX: u32 = 3;

/// What holds for a session.
#[derive(Debug)]
pub(super) struct Rules {
    pub(super) name: String,
    pub(super) message_bytes_max: usize,
    pub(super) recipients_max: usize,
    /// Whether there is a certificate.
    pub(super) offers_tls: bool,
    /// Whether a key may be shown without TLS.
    pub(super) trusts_plain: bool,
    /// The network that it comes from, where that needs no key.
    pub(super) open: Option<Arc<OpenNetwork>>,
}

/// What must be done next.
#[derive(Debug)]
pub(super) enum Step {
    /// Write the output, then read more.
    Read,
    /// Write the output, then go on under TLS; whatever has come besides is to be forgotten.
    StartTls,
    /// Look up what the name of [`Conversation::scram_name`] stands for, and tell [`Conversation::looked_up`].
    LookUp,
    /// Judge the key, and tell [`Conversation::judged`].
    Judge,
    /// Store the mail, and tell [`Conversation::stored`].
    Store(Submission),
    /// Write the output, then end.
    Close(Ending),
}

/// How a conversation ended by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// The client said so.
    Quit,
    /// The client was cut off.
    Cut,
}

/// A whole mail.
#[derive(Debug)]
pub(super) struct Submission {
    pub(super) envelope: Envelope,
    pub(super) body: Bytes,
    /// Which mail of the session it is, from 1.
    pub(super) number: u32,
    /// Its part of the memory.
    pub(super) share: Share,
}

/// From whom and to whom.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Envelope {
    pub(super) from: Option<EmailAddress>,
    pub(super) to: Vec<EmailAddress>,
    pub(super) smtputf8: bool,
    /// What is to be reported about it.
    pub(super) dsn: DsnWishes,
}

#[derive(Debug)]
enum Stage {
    Command,
    Login(Awaited),
    Data(DataReader),
    /// So many octets of a chunk are left; refused where there is a reply.
    Chunk {
        left: u64,
        last: bool,
        refusal: Option<Reply>,
    },
    /// A name is being looked up.
    LookingUp(ScramHello),
    /// A key is being judged; where it opens, these words go before the welcome.
    Judging(Option<Reply>),
    /// TLS is about to begin.
    Securing,
    /// A mail is being stored.
    Storing,
    Over(Ending),
}

/// A mail that comes in chunks.
#[derive(Debug)]
enum Chunks {
    Taken(Normalizer),
    /// One was refused, and so are the rest; the last one ends it, or RSET.
    Spoilt,
}

/// One session's state.
#[derive(Debug)]
pub(super) struct Conversation {
    rules: Rules,
    budget: Arc<Budget>,
    output: Vec<u8>,
    stage: Stage,
    secure: bool,
    greeted_as: Option<String>,
    credentials: Option<SmtpCredentials>,
    /// Whether the credentials opened.
    admitted: bool,
    envelope: Option<Envelope>,
    /// Octets of what is to be reported about the recipients.
    dsn_octets: usize,
    body: Option<Body>,
    chunks: Option<Chunks>,
    errors: u32,
    wrong_keys: u32,
    mails: u32,
}

impl Conversation {
    /// One that has just begun; the greeting is in its output.
    pub(super) fn new(rules: Rules, budget: Arc<Budget>, secure: bool) -> Self {
        let output = format!("220 {} ESMTP Postway\r\n", rules.name).into_bytes();
        let credentials = rules.open.clone().map(SmtpCredentials::Network);
        Self {
            rules,
            budget,
            output,
            stage: Stage::Command,
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

    /// Replies that are to be written; whoever writes them clears them.
    pub(super) fn output(&mut self) -> &mut Vec<u8> {
        &mut self.output
    }

    /// What the client calls itself.
    pub(super) fn greeted_as(&self) -> &str {
        self.greeted_as.as_deref().unwrap_or_default()
    }

    /// The key that was shown or proven, or what stands for one.
    pub(super) fn credentials(&self) -> Option<&SmtpCredentials> {
        self.credentials.as_ref()
    }

    /// Whether a key opened, or none is needed.
    pub(super) fn is_admitted(&self) -> bool {
        self.admitted || self.rules.open.is_some()
    }

    pub(super) fn is_secure(&self) -> bool {
        self.secure
    }

    /// Whether a mail is coming in, or a chunk that is read only to be refused: both must end in time.
    pub(super) fn is_receiving(&self) -> bool {
        self.body.is_some() || matches!(self.stage, Stage::Chunk { .. })
    }

    /// Goes on under TLS, as if nothing had been said (RFC 3207, 4.2).
    pub(super) fn secured(&mut self) {
        self.stage = Stage::Command;
        self.secure = true;
        self.greeted_as = None;
        self.forget_credentials();
        self.forget_mail();
    }

    fn forget_credentials(&mut self) {
        self.credentials = self.rules.open.clone().map(SmtpCredentials::Network);
        self.admitted = false;
    }

    /// The name whose keys are to be looked up.
    pub(super) fn scram_name(&self) -> Option<&str> {
        match &self.stage {
            Stage::LookingUp(hello) => Some(&hello.username),
            _ => None,
        }
    }

    /// What a proof under that name is checked against; the nonce is the server's half of it.
    pub(super) fn looked_up(&mut self, offer: Result<ScramOffer, Denied>, nonce: &str) {
        let Stage::LookingUp(hello) = std::mem::replace(&mut self.stage, Stage::Command) else { return };
        match offer {
            Ok(offer) => {
                let (exchange, words) = hello.answer(offer, nonce);
                self.stage = Stage::Login(Awaited::ScramProof(exchange));
                login::challenge(&words).write(&mut self.output);
            }
            Err(denied) => self.deny(denied),
        }
    }

    /// Ends it from outside, with these last words.
    pub(super) fn end(&mut self, reply: Reply) {
        self.close(reply, Ending::Cut);
    }

    /// Reads what has come.
    pub(super) fn advance(&mut self, input: &mut BytesMut) -> Step {
        loop {
            let step = match &mut self.stage {
                Stage::Command | Stage::Login(_) => self.line(input),
                Stage::Data(_) => self.data(input),
                Stage::Chunk { .. } => self.chunk(input),
                Stage::LookingUp(_) => Some(Step::LookUp),
                Stage::Judging(_) => Some(Step::Judge),
                Stage::Securing => Some(Step::StartTls),
                Stage::Storing => Some(Step::Read),
                Stage::Over(ending) => Some(Step::Close(*ending)),
            };
            if let Some(step) = step {
                return step;
            }
        }
    }

    /// Whether the key opens.
    pub(super) fn judged(&mut self, verdict: Result<(), Denied>) {
        let judging = std::mem::replace(&mut self.stage, Stage::Command);
        match (verdict, judging) {
            (Ok(()), Stage::Judging(Some(words))) => {
                self.stage = Stage::Login(Awaited::ScramEnd);
                words.write(&mut self.output);
            }
            (Ok(()), _) => self.welcome(),
            (Err(denied), _) => self.deny(denied),
        }
    }

    fn welcome(&mut self) {
        self.admitted = true;
        Reply::new(235, "2.7.0", "welcome").write(&mut self.output);
    }

    fn deny(&mut self, denied: Denied) {
        let reply = match denied {
            Denied::Refused(why) => {
                self.wrong_keys += 1;
                Reply::saying(535, "5.7.8", &why)
            }
            Denied::Later(why) => {
                self.wrong_keys += 1;
                Reply::saying(454, "4.7.0", &why)
            }
            Denied::Unavailable(_) => {
                Reply::new(454, "4.7.0", "keys cannot be looked up now: try again later")
            }
        };
        self.forget_credentials();
        match self.wrong_keys {
            WRONG_KEYS_MAX.. => self.close(reply, Ending::Cut),
            _ => reply.write(&mut self.output),
        }
    }

    /// What became of the mail.
    pub(super) fn stored(&mut self, answer: &Reply) {
        self.stage = Stage::Command;
        if answer.code < 300 {
            self.errors = 0;
        }
        answer.write(&mut self.output);
    }

    fn line(&mut self, input: &mut BytesMut) -> Option<Step> {
        let is_login = matches!(self.stage, Stage::Login(_))
            || input.get(..5).is_some_and(|start| start.eq_ignore_ascii_case(b"AUTH "));
        let limit = if is_login { LOGIN_LINE_OCTETS_MAX } else { LINE_OCTETS_MAX };
        let length = match line::first(input, limit) {
            Ok(Some(length)) => length,
            Ok(None) => return Some(Step::Read),
            Err(bad) => {
                self.close(bad_line(bad), Ending::Cut);
                return None;
            }
        };
        let line = &input[..length];
        match std::mem::replace(&mut self.stage, Stage::Command) {
            Stage::Login(awaited) => self.turn(login::go_on(awaited, line)),
            _ => match command::parse(line) {
                Ok(command) => self.obey(command),
                Err(fault) if fault.is_fatal => self.close(fault.reply, Ending::Cut),
                // A list of recipients may have any number of bad ones.
                Err(fault) if fault.reply.code == 553 => fault.reply.write(&mut self.output),
                Err(fault) => self.say(fault.reply),
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

    /// Replies, and ends the session at the last mistake that it may make.
    fn say(&mut self, reply: Reply) {
        self.errors += u32::from(reply.is_error());
        reply.write(&mut self.output);
        if reply.is_error() && self.errors >= ERRORS_MAX {
            self.close(Reply::new(421, "4.7.0", "too many mistakes"), Ending::Cut);
        }
    }

    fn close(&mut self, reply: Reply, ending: Ending) {
        self.forget_mail();
        reply.write(&mut self.output);
        self.stage = Stage::Over(ending);
    }
}

const OK: Reply = Reply::new(250, "2.0.0", "ok");
const EHLO_FIRST: Reply = Reply::new(503, "5.5.1", "say EHLO first");
const MAIL_FIRST: Reply = Reply::new(503, "5.5.1", "say MAIL first");
const OUT_OF_ORDER: Reply = Reply::new(503, "5.5.1", "this is not the time for that; RSET begins anew");

fn bad_line(bad: BadLine) -> Reply {
    match bad {
        BadLine::BareLf => Reply::new(
            554,
            "5.5.2",
            "bare LF: commands, and the dot that ends a mail, end with CR LF; nothing was taken",
        ),
        BadLine::BareCr => {
            Reply::new(554, "5.5.2", "bare CR: lines end with CR LF, in mail too; nothing was taken")
        }
        BadLine::TooLong => Reply::new(500, "5.5.2", "the line is too long"),
    }
}

fn too_large(bytes_max: usize) -> Reply {
    Reply::saying(552, "5.3.4", &format!("a mail may have {bytes_max} bytes at most"))
}
