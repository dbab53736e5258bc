//! MAIL, RCPT, DATA and the body.

use std::{io, time::Instant};

use super::{Effect, Session, ended};
use crate::smtp_sink::{
    ledger::{ReceivedMail, header},
    script::{SinkAction, SinkVerb},
};

/// The largest mail that is taken.
const BODY_BYTES_MAX: usize = 64 * 1024 * 1024;

impl Session {
    pub(super) async fn mail(&mut self, line: &str) -> io::Result<()> {
        if self.shared.manner.auth.is_some() && self.user.is_none() {
            self.say("530 5.7.0 Authentication required");
            return Ok(());
        }
        if self.sender.is_some() {
            self.say("503 5.5.1 Error: nested MAIL command");
            return Ok(());
        }
        self.transactions += 1;
        let (path, parameters) = path(line);
        if self.answer(SinkVerb::Mail, &path, &[], "250 2.1.0 Ok").await? == Effect::Done {
            self.sender = Some((path, parameters));
        }
        Ok(())
    }

    pub(super) async fn rcpt(&mut self, line: &str) -> io::Result<()> {
        if self.sender.is_none() {
            self.say("503 5.5.1 Error: need MAIL command");
            return Ok(());
        }
        let (path, _) = path(line);
        self.shared.note(|ledger| *ledger.offers.entry(path.clone()).or_default() += 1);
        if self.answer(SinkVerb::Rcpt, &path, &[], "250 2.1.5 Ok").await? == Effect::Done {
            self.recipients.push(path);
        }
        Ok(())
    }

    pub(super) async fn data(&mut self) -> io::Result<()> {
        // With no recipient a rule may still have its way, as some servers say 354 all the same.
        let usual = match self.recipients.is_empty() {
            true => "554 5.5.1 Error: no valid recipients",
            false => "354 End data with <CR><LF>.<CR><LF>",
        };
        if self.answer(SinkVerb::Data, "DATA", &[], usual).await? == Effect::None {
            return Ok(());
        }
        let raw = self.body().await?;
        let (sender, mail_parameters) = self.sender.take().unwrap_or_default();
        let mail = ReceivedMail {
            sender,
            mail_parameters,
            recipients: std::mem::take(&mut self.recipients),
            postway_id: header(&raw, "X-Postway-ID"),
            message_id: header(&raw, "Message-ID"),
            at: Instant::now(),
            tls: self.pipe.is_tls(),
            user: self.user.clone(),
            helo: self.helo.clone(),
            connection: self.connection,
            raw,
        };
        self.shared.note(|ledger| ledger.dots += 1);
        let mut action = self.shared.action(&self.event(SinkVerb::Dot, "", &mail.raw));
        let mut unrecorded = Some(mail);
        if let SinkAction::Recorded(inner) = action {
            self.record(&mut unrecorded);
            action = *inner;
        }
        let number = self.shared.ledger().dots;
        if self.is_lmtp && matches!(action, SinkAction::Proceed) {
            return self.answer_each(unrecorded).await;
        }
        let effect = self.perform(action, &format!("250 2.0.0 Ok: queued as SINK{number}")).await?;
        // The ledger is written before the reply is flushed: who has heard 250 will find the mail here.
        if effect == Effect::Done {
            self.record(&mut unrecorded);
        }
        Ok(())
    }

    /// Gives an answer for each recipient, as LMTP has it. The ledger gets the mail with those that were
    /// taken.
    async fn answer_each(&mut self, mail: Option<ReceivedMail>) -> io::Result<()> {
        let Some(mail) = mail else { return Ok(()) };
        let mut taken = Vec::new();
        for recipient in mail.recipients.clone() {
            let usual = format!("250 2.0.0 <{recipient}> Saved");
            let answered = self.answer(SinkVerb::Answer, &recipient, &[], &usual).await;
            if answered.as_ref().is_ok_and(|effect| *effect == Effect::Done) {
                taken.push(recipient);
            }
            if answered.is_err() {
                self.shared.note(|ledger| ledger.mails.push(ReceivedMail { recipients: taken, ..mail }));
                return answered.map(|_| ());
            }
        }
        self.shared.note(|ledger| ledger.mails.push(ReceivedMail { recipients: taken, ..mail }));
        Ok(())
    }

    fn record(&self, mail: &mut Option<ReceivedMail>) {
        if let Some(mail) = mail.take() {
            self.shared.note(|ledger| ledger.mails.push(mail));
        }
    }

    /// Reads up to the final dot and removes the stuffing. Only CR LF ends a line here.
    async fn body(&mut self) -> io::Result<Vec<u8>> {
        self.flush().await?;
        // A line end before the body lets a dot on its first line be found like any other.
        let mut wire = b"\r\n".to_vec();
        wire.append(&mut self.input);
        let mut seen = 2;
        let mut searched = 0;
        let end = loop {
            self.shared.note(|ledger| ledger.body_bytes += wire.len() - seen);
            seen = wire.len();
            if let Some(at) = wire[searched..].windows(5).position(|w| w == b"\r\n.\r\n") {
                break searched + at;
            }
            searched = wire.len().saturating_sub(4);
            if wire.len() > 2 {
                match self.shared.action(&self.event(SinkVerb::Body, "", &wire[2..])) {
                    SinkAction::Proceed => {}
                    action => {
                        self.perform(action, "").await?;
                        self.flush().await?;
                    }
                }
            }
            if wire.len() > BODY_BYTES_MAX {
                return Err(ended());
            }
            self.read(&mut wire).await?;
        };
        self.input = wire.split_off(end + 5);
        let mut raw = Vec::with_capacity(end);
        for line in wire[2..end + 2].split_inclusive(|&b| b == b'\n') {
            raw.extend_from_slice(line.strip_prefix(b".").unwrap_or(line));
        }
        Ok(raw)
    }
}

/// The path between the angle brackets and what follows it.
fn path(line: &str) -> (String, String) {
    let inside = line.split_once('<').and_then(|(_, rest)| rest.split_once('>'));
    let (path, parameters) = inside.unwrap_or_default();
    (path.to_owned(), parameters.trim().to_owned())
}
