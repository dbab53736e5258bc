//! A mail as it comes in: after DATA, or in chunks (RFC 3030).
//!
//! The end of a chunk is known by its size, so nothing can hide behind a bare LF in it: it is written as CR LF, as after
//! DATA. A bare CR is refused.

use bytes::{Buf, BytesMut};

use super::{Chunks, Conversation, Ending, OK, OUT_OF_ORDER, Stage, Step, Submission, bad_line, too_large};
use crate::smtp::{
    body::{Body, Loss},
    data::Received,
    line::Normalizer,
    reply::Reply,
};

impl Conversation {
    pub(super) fn empty_body(&self) -> Body {
        Body::new(self.rules.message_bytes_max, &self.budget)
    }

    pub(super) fn data(&mut self, input: &mut BytesMut) -> Option<Step> {
        let (Stage::Data(reader), Some(body)) = (&mut self.stage, &mut self.body) else { return None };
        match reader.advance(input, body) {
            Received::More => Some(Step::Read),
            Received::End => self.finish_mail(),
            Received::Bad(bad) => {
                self.close(bad_line(bad), Ending::Cut);
                None
            }
        }
    }

    pub(super) fn begin_chunk(&mut self, octets: u64, last: bool) {
        let refusal = match (self.may_receive(), &self.chunks) {
            (Err(reply), _) => Some(reply),
            (Ok(()), Some(Chunks::Spoilt)) => Some(OUT_OF_ORDER),
            (Ok(()), _) => None,
        };
        if refusal.is_none() && self.body.is_none() {
            self.body = Some(self.empty_body());
            self.chunks = Some(Chunks::Taken(Normalizer::default()));
        }
        self.stage = Stage::Chunk { left: octets, last, refusal };
    }

    /// Moves what has come of a chunk into the body; a refused one is read too, since what follows it are commands.
    pub(super) fn chunk(&mut self, input: &mut BytesMut) -> Option<Step> {
        let Stage::Chunk { left, last, refusal } = &mut self.stage else { return None };
        let here = usize::try_from(*left).map_or(input.len(), |left| left.min(input.len()));
        *left -= here as u64;
        if let (None, Some(body), Some(Chunks::Taken(normalizer))) =
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
            return Some(Step::Read);
        }
        let (last, refusal) = (*last, refusal.take());
        self.stage = Stage::Command;
        match refusal {
            Some(reply) => {
                self.body = None;
                if last {
                    // Nothing of this mail follows, whatever became of it.
                    self.forget_mail();
                } else if self.envelope.is_some() {
                    self.chunks = Some(Chunks::Spoilt);
                }
                self.say(reply);
                None
            }
            None if last => self.finish_mail(),
            None => {
                self.say(OK);
                None
            }
        }
    }

    /// A mail is complete: it is stored, unless it was lost on the way.
    fn finish_mail(&mut self) -> Option<Step> {
        self.stage = Stage::Command;
        self.chunks = None;
        let (Some(body), Some(envelope)) = (self.body.take(), self.envelope.take()) else { return None };
        if let Some(loss) = body.loss() {
            lost(loss, self.rules.message_bytes_max).write(&mut self.output);
            return None;
        }
        self.mails += 1;
        self.stage = Stage::Storing;
        let (body, share) = body.into_parts();
        Some(Step::Store(Submission { envelope, body, number: self.mails, share }))
    }
}

fn lost(loss: Loss, bytes_max: usize) -> Reply {
    match loss {
        Loss::TooLarge => too_large(bytes_max),
        Loss::NoRoom => Reply::new(452, "4.3.1", "too much mail is coming in at once: try again later"),
    }
}
