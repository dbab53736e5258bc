//! Handles each command, and checks that it is allowed now.

use postway_domain::{
    EmailAddress,
    dsn::{DsnWishes, RecipientDsn},
};

use super::{
    ConversationStage, EHLO_FIRST, MAIL_FIRST, OK, OUT_OF_ORDER, SessionEnding, SmtpConversation,
    SmtpEnvelope, too_large,
};
use crate::smtp::{
    command::{NEEDS_SMTPUTF8, NamedClient, RecipientPath, SmtpCommand},
    data::DataReader,
    login::{self, LoginTurn},
    reply::SubmissionReply,
};

const NO_LOGIN: SubmissionReply =
    SubmissionReply::new(502, "5.5.1", "nobody logs in here: this server receives mail and relays none");
const NO_REPORTS: SubmissionReply =
    SubmissionReply::new(555, "5.5.4", "this parameter is not known or was not offered");
/// The most mails of one session.
const MAILS_MAX: u32 = 10_000;
/// The most octets of report requests for the recipients of one mail.
const DSN_OCTETS_MAX: usize = 64 * 1024;
/// The most octets of a recipient's report request besides address and ORCPT.
const DSN_FRAME_OCTETS: usize = 64;

impl SmtpConversation {
    pub(super) fn handle_command(&mut self, command: SmtpCommand<'_>) {
        match command {
            SmtpCommand::Ehlo(name) => self.greet(name, true),
            SmtpCommand::Helo(name) => self.greet(name, false),
            SmtpCommand::StartTls => self.start_tls(),
            SmtpCommand::Auth { .. } if self.rules.is_reception => self.answer(NO_LOGIN),
            SmtpCommand::Auth { mechanism, initial } => match self.may_log_in() {
                Ok(()) => self.apply_login(login::begin(mechanism, initial)),
                Err(reply) => self.answer(reply),
            },
            SmtpCommand::Mail { ret, envid, .. }
                if self.rules.is_reception && (ret.is_some() || envid.is_some()) =>
            {
                self.answer(NO_REPORTS)
            }
            SmtpCommand::Mail { from, size, smtputf8, ret, envid } => {
                let dsn = DsnWishes { ret, envid, ..DsnWishes::default() };
                self.mail(SmtpEnvelope { from, to: Vec::new(), smtputf8, dsn }, size);
            }
            SmtpCommand::Rcpt { dsn, .. } if self.rules.is_reception && !dsn.is_empty() => {
                self.answer(NO_REPORTS)
            }
            SmtpCommand::Rcpt { to, dsn } => self.rcpt(to, dsn),
            SmtpCommand::Data => match self.may_receive() {
                Ok(()) if self.chunks.is_some() => self.answer(OUT_OF_ORDER),
                Ok(()) => {
                    self.body = Some(self.empty_body());
                    self.stage = ConversationStage::Data(DataReader::new());
                    SubmissionReply::new(354, "", "end with a line that is a dot alone")
                        .write(&mut self.output);
                }
                Err(reply) => self.answer(reply),
            },
            SmtpCommand::Bdat { octets, last } => self.begin_chunk(octets, last),
            SmtpCommand::Xclient(client) => self.xclient(client),
            SmtpCommand::Rset => {
                self.forget_mail();
                self.answer(OK);
            }
            SmtpCommand::Noop => self.answer(OK),
            SmtpCommand::Vrfy => {
                // The same answer for every name: nobody learns here who exists.
                self.answer(SubmissionReply::new(252, "2.1.5", "send mail, and it will be tried"))
            }
            SmtpCommand::Expn => self.answer(SubmissionReply::new(502, "5.5.1", "there are no lists here")),
            SmtpCommand::Help => {
                self.answer(SubmissionReply::new(214, "2.0.0", "see the guide to SMTP submission of Postway"))
            }
            SmtpCommand::Quit => self.close(SubmissionReply::new(221, "2.0.0", "bye"), SessionEnding::Quit),
        }
    }

    fn greet(&mut self, name: &str, extended: bool) {
        self.forget_mail();
        self.greeted_as = Some(name.to_owned());
        let own = &self.rules.name;
        if !extended {
            self.output.extend_from_slice(format!("250 {own}\r\n").as_bytes());
            return;
        }
        let size = self.rules.message_bytes_max;
        // The reception makes no reports, so it does not offer to (RFC 3461).
        let dsn = if self.rules.is_reception { "" } else { "250-DSN\r\n" };
        let mut lines = format!(
            "250-{own}\r\n250-PIPELINING\r\n250-SIZE {size}\r\n250-8BITMIME\r\n250-SMTPUTF8\r\n{dsn}\
             250-ENHANCEDSTATUSCODES\r\n"
        );
        if self.rules.offers_tls && !self.secure {
            lines += "250-STARTTLS\r\n";
        }
        if self.rules.takes_xclient {
            lines += "250-XCLIENT NAME ADDR PORT PROTO HELO DESTADDR DESTPORT\r\n";
        }
        if self.may_show_key() && !self.rules.is_reception {
            lines += "250-AUTH PLAIN LOGIN SCRAM-SHA-256\r\n";
        }
        lines += "250 CHUNKING\r\n";
        self.output.extend_from_slice(lines.as_bytes());
    }

    fn may_show_key(&self) -> bool {
        self.secure || self.privileges.trusts_plain
    }

    fn start_tls(&mut self) {
        if self.secure {
            self.answer(SubmissionReply::new(503, "5.5.1", "TLS is on already"));
        } else if !self.rules.offers_tls {
            self.answer(SubmissionReply::new(502, "5.5.1", "there is no TLS here"));
        } else {
            self.stage = ConversationStage::Securing;
            SubmissionReply::new(220, "2.0.0", "go on under TLS").write(&mut self.output);
        }
    }

    /// A server that was named for it says for whom it speaks. What it does not say stays as it was said.
    fn xclient(&mut self, client: NamedClient) {
        if !self.rules.takes_xclient {
            let why = "XCLIENT is taken from the networks in smtp.xclient_networks only";
            return self.answer(SubmissionReply::new(550, "5.7.1", why));
        }
        if self.envelope.is_some() {
            return self.answer(OUT_OF_ORDER);
        }
        if client != NamedClient::Nobody {
            self.named = client;
        }
        self.stage = ConversationStage::Renaming;
    }

    fn may_log_in(&self) -> Result<(), SubmissionReply> {
        if self.greeted_as.is_none() {
            return Err(EHLO_FIRST);
        }
        if self.admitted || self.envelope.is_some() {
            return Err(OUT_OF_ORDER);
        }
        match self.may_show_key() {
            true => Ok(()),
            false => Err(SubmissionReply::new(
                538,
                "5.7.11",
                "a key may be shown under TLS only: say STARTTLS first (or see smtp.plaintext_networks)",
            )),
        }
    }

    pub(super) fn apply_login(&mut self, turn: LoginTurn) {
        match turn {
            LoginTurn::Ask(awaited, reply) => {
                self.stage = ConversationStage::Login(awaited);
                reply.write(&mut self.output);
            }
            LoginTurn::Shown(credentials) => {
                self.credentials = Some(credentials);
                self.stage = ConversationStage::CheckingKey(None);
            }
            LoginTurn::LookUp(hello) => self.stage = ConversationStage::LookingUp(hello),
            LoginTurn::Proven(credentials, words) => {
                self.credentials = Some(credentials);
                self.stage = ConversationStage::CheckingKey(Some(words));
            }
            LoginTurn::Over => self.welcome(),
            LoginTurn::Failed(reply) => {
                self.forget_credentials();
                self.answer(reply);
            }
        }
    }

    fn mail(&mut self, envelope: SmtpEnvelope, size: Option<u64>) {
        if self.greeted_as.is_none() {
            return self.answer(EHLO_FIRST);
        }
        if !self.is_admitted() {
            return self.answer(match self.may_show_key() {
                true => SubmissionReply::new(
                    530,
                    "5.7.0",
                    "log in with a key first: AUTH PLAIN, LOGIN or SCRAM-SHA-256",
                ),
                false => {
                    SubmissionReply::new(530, "5.7.0", "log in with a key first, under TLS: say STARTTLS")
                }
            });
        }
        if self.envelope.is_some() {
            return self.answer(OUT_OF_ORDER);
        }
        if self.mails >= MAILS_MAX {
            return self.close(
                SubmissionReply::new(421, "4.7.0", "that is enough for one session: connect again"),
                SessionEnding::Cut,
            );
        }
        if size.is_some_and(|size| size > self.rules.message_bytes_max as u64) {
            return self.answer(too_large(self.rules.message_bytes_max));
        }
        self.envelope = Some(envelope);
        SubmissionReply::new(250, "2.1.0", "sender ok").write(&mut self.output);
    }

    fn rcpt(&mut self, to: RecipientPath, dsn: RecipientDsn) {
        let recipients_max = self.rules.recipients_max;
        let address: EmailAddress = match to {
            RecipientPath::Address(address) => address,
            RecipientPath::Postmaster => match format!("postmaster@{}", self.rules.name).parse() {
                Ok(address) => address,
                Err(_) => {
                    let why = "this server has no mail domain (smtp.ehlo_name): write a full address";
                    return SubmissionReply::new(553, "5.1.3", why).write(&mut self.output);
                }
            },
        };
        let orcpt_octets = dsn.orcpt.as_ref().map_or(0, |orcpt| orcpt.as_str().len());
        let dsn_octets = match dsn.is_empty() {
            true => 0,
            false => DSN_FRAME_OCTETS + address.as_str().len() + orcpt_octets,
        };
        let reply = match &mut self.envelope {
            None => return self.answer(MAIL_FIRST),
            Some(_) if self.chunks.is_some() => return self.answer(OUT_OF_ORDER),
            Some(envelope) if address.needs_smtputf8() && !envelope.smtputf8 => NEEDS_SMTPUTF8,
            Some(envelope) if envelope.to.len() >= recipients_max => SubmissionReply::new(
                452,
                "4.5.3",
                "this mail has as many recipients as it may: send the rest with another",
            ),
            Some(_) if self.dsn_octets + dsn_octets > DSN_OCTETS_MAX => SubmissionReply::new(
                452,
                "4.5.3",
                "this mail has as many NOTIFY and ORCPT as it may: send the rest with another",
            ),
            Some(_) if self.rules.is_reception => {
                self.stage = ConversationStage::AskingRecipient(address);
                return;
            }
            Some(envelope) => {
                if !dsn.is_empty() {
                    self.dsn_octets += dsn_octets;
                    envelope.dsn.recipients.insert(address.as_str().to_owned(), dsn);
                }
                envelope.to.push(address);
                SubmissionReply::new(250, "2.1.5", "recipient ok")
            }
        };
        reply.write(&mut self.output);
    }

    pub(super) fn may_receive(&self) -> Result<(), SubmissionReply> {
        match &self.envelope {
            None => Err(MAIL_FIRST),
            Some(envelope) if envelope.to.is_empty() => {
                Err(SubmissionReply::new(554, "5.5.1", "there is no valid recipient"))
            }
            Some(_) => Ok(()),
        }
    }
}
