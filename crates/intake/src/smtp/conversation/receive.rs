//! Receives a mail after DATA, or in chunks (RFC 3030).
//!
//! The size of a chunk says where it ends, so nothing can hide behind a bare LF in it: the LF becomes CR LF,
//! as after DATA. A bare CR is refused.

use bytes::{Buf, BytesMut};

use super::{
    ChunkState, ConversationStage, OK, OUT_OF_ORDER, SessionEnding, SessionStep, SmtpConversation,
    SubmittedMail, bad_line, too_large,
};
use crate::smtp::{
    body::{IncomingMail, MailLoss},
    data::DataProgress,
    line::LineNormalizer,
    reply::{NO_ROOM, SubmissionReply},
};

impl SmtpConversation {
    pub(super) fn empty_body(&self) -> IncomingMail {
        IncomingMail::new(self.rules.message_bytes_max, &self.budget)
    }

    pub(super) fn data(&mut self, input: &mut BytesMut) -> Option<SessionStep> {
        let (ConversationStage::Data(reader), Some(body)) = (&mut self.stage, &mut self.body) else {
            return None;
        };
        match reader.advance(input, body) {
            DataProgress::More => Some(SessionStep::Read),
            DataProgress::End => self.finish_mail(),
            DataProgress::Bad(bad) => {
                self.close(bad_line(bad), SessionEnding::Cut);
                None
            }
        }
    }

    pub(super) fn begin_chunk(&mut self, octets: u64, last: bool) {
        let refusal = match (self.may_receive(), &self.chunks) {
            (Err(reply), _) => Some(reply),
            (Ok(()), Some(ChunkState::Spoilt)) => Some(OUT_OF_ORDER),
            (Ok(()), _) => None,
        };
        if refusal.is_none() && self.body.is_none() {
            self.body = Some(self.empty_body());
            self.chunks = Some(ChunkState::Taken(LineNormalizer::default()));
        }
        self.stage = ConversationStage::Chunk { left: octets, last, refusal };
    }

    /// Moves the input of a chunk into the mail. A refused chunk is read too, because commands follow it.
    pub(super) fn chunk(&mut self, input: &mut BytesMut) -> Option<SessionStep> {
        let ConversationStage::Chunk { left, last, refusal } = &mut self.stage else { return None };
        let here = usize::try_from(*left).map_or(input.len(), |left| left.min(input.len()));
        *left -= here as u64;
        if let (None, Some(body), Some(ChunkState::Taken(normalizer))) =
            (&refusal, &mut self.body, &mut self.chunks)
        {
            let pushed = normalizer.push(&input[..here], body);
            let ended = if *left == 0 && *last { normalizer.finish() } else { Ok(()) };
            *refusal = pushed.and(ended).err().map(bad_line);
            if let Some(loss) = body.loss() {
                *refusal = Some(lost(loss, self.rules.message_bytes_max));
            }
        }
        input.advance(here);
        if *left > 0 {
            return Some(SessionStep::Read);
        }
        let (last, refusal) = (*last, refusal.take());
        self.stage = ConversationStage::Command;
        match refusal {
            Some(reply) => {
                self.body = None;
                if last {
                    // This was the last chunk of the mail.
                    self.forget_mail();
                } else if self.envelope.is_some() {
                    self.chunks = Some(ChunkState::Spoilt);
                }
                self.answer(reply);
                None
            }
            None if last => self.finish_mail(),
            None => {
                self.answer(OK);
                None
            }
        }
    }

    /// Completes a mail: it is stored, unless it was dropped on the way.
    fn finish_mail(&mut self) -> Option<SessionStep> {
        self.stage = ConversationStage::Command;
        self.chunks = None;
        let (Some(body), Some(envelope)) = (self.body.take(), self.envelope.take()) else { return None };
        if let Some(loss) = body.loss() {
            lost(loss, self.rules.message_bytes_max).write(&mut self.output);
            return None;
        }
        self.mails += 1;
        self.stage = ConversationStage::Storing;
        let (body, share) = body.into_parts();
        Some(SessionStep::Store(SubmittedMail { envelope, body, number: self.mails, share }))
    }
}

fn lost(loss: MailLoss, bytes_max: usize) -> SubmissionReply {
    match loss {
        MailLoss::TooLarge => too_large(bytes_max),
        MailLoss::NoRoom => NO_ROOM,
    }
}
