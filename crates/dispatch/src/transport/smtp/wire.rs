//! Bytes to and from the relay: buffered reads, bounded replies and writes, each with one deadline for all of
//! it.
//!
//! Every failure names the phase it happened in. After a failure, commands and replies may be out of step, so
//! the caller must not use the connection again.

use std::{io, time::Duration};

use bytes::{BufMut, BytesMut};
use futures::FutureExt;
use postway_domain::failure::{FailurePhase, SendFailure};
use postway_net::NetStream;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{Instant, timeout_at},
};

use super::{dialogue::OpeningLog, judge::closed_failure, reply::ReplyParser};
use crate::transport::RelayReply;

/// How much is read at once. Replies are short, and a peer that floods must not make the buffer grow.
const READ_BYTES: usize = 4 * 1024;
/// The most capacity that a buffer keeps between messages.
const KEPT_BYTES_MAX: usize = 64 * 1024;
/// The final dot. The CR LF before it belongs to the body.
const DOT: &[u8] = b".\r\n";

/// A connection with its buffers.
#[derive(Debug)]
pub(super) struct SmtpWire {
    stream: Option<NetStream>,
    input: BytesMut,
    output: Vec<u8>,
    /// Where commands and replies are noted while the connection is opened.
    opening: Option<OpeningLog>,
}

/// What the peer sent while it was our turn.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum UnaskedInput {
    /// Nothing, as the protocol demands.
    Nothing,
    /// Bytes that were not asked for.
    Words,
    /// The connection was closed or reset.
    Closed,
}

/// The final dot could not be written.
#[derive(Debug)]
pub(super) struct DotFailure {
    pub(super) failure: SendFailure,
    /// A part of the dot may have reached the peer.
    pub(super) begun: bool,
}

impl SmtpWire {
    pub(super) fn new(stream: NetStream) -> Self {
        let input = BytesMut::with_capacity(READ_BYTES);
        Self { stream: Some(stream), input, output: Vec::new(), opening: None }
    }

    /// Notes commands and replies from now on.
    pub(super) fn note_in(&mut self, opening: &OpeningLog) {
        self.opening = Some(opening.clone());
    }

    /// Notes nothing any more.
    pub(super) fn stop_noting(&mut self) {
        self.opening = None;
    }

    /// Where commands and replies are noted, if they are.
    pub(super) fn opening(&self) -> Option<&OpeningLog> {
        self.opening.as_ref()
    }

    pub(super) fn is_open(&self) -> bool {
        self.stream.is_some()
    }

    pub(super) fn is_tls(&self) -> bool {
        self.stream.as_ref().is_some_and(NetStream::is_tls)
    }

    /// True if the peer has sent more than it was asked for.
    pub(super) fn has_unread(&self) -> bool {
        !self.input.is_empty()
    }

    /// Drops the connection at once.
    pub(super) fn close(&mut self) {
        self.stream = None;
    }

    /// The TCP connection, for a TLS handshake; `None` if it is not a plain one.
    pub(super) fn into_plain(self) -> Option<TcpStream> {
        self.stream?.into_tcp()
    }

    /// The buffer of commands that [`SmtpWire::send`] writes.
    pub(super) fn output(&mut self) -> &mut Vec<u8> {
        &mut self.output
    }

    /// Writes the buffered commands in one go.
    pub(super) async fn send(&mut self, phase: FailurePhase, deadline: Instant) -> Result<(), SendFailure> {
        let mut output = std::mem::take(&mut self.output);
        let sent = self.write(phase, &output, deadline).await;
        output.clear();
        output.shrink_to(KEPT_BYTES_MAX);
        self.output = output;
        sent
    }

    /// Writes and flushes `bytes`.
    pub(super) async fn write(
        &mut self,
        phase: FailurePhase,
        bytes: &[u8],
        deadline: Instant,
    ) -> Result<(), SendFailure> {
        let stream = self.stream.as_mut().ok_or_else(|| closed_failure(phase))?;
        let write = async {
            stream.write_all(bytes).await?;
            stream.flush().await
        };
        match timeout_at(deadline, write).await {
            Ok(written) => written.map_err(|error| io_failure(phase, &error)),
            Err(_) => Err(SendFailure::timeout(phase)),
        }
    }

    /// Sends one command and reads its reply.
    pub(super) async fn command(
        &mut self,
        phase: FailurePhase,
        line: &str,
        limit: Duration,
    ) -> Result<RelayReply, SendFailure> {
        let deadline = Instant::now() + limit;
        if let Some(opening) = &self.opening {
            opening.command(line);
        }
        self.output.extend_from_slice(line.as_bytes());
        self.output.extend_from_slice(b"\r\n");
        self.send(phase, deadline).await?;
        self.reply(phase, deadline).await
    }

    /// Reads one complete reply before `deadline`.
    pub(super) async fn reply(
        &mut self,
        phase: FailurePhase,
        deadline: Instant,
    ) -> Result<RelayReply, SendFailure> {
        let mut parser = ReplyParser::default();
        loop {
            match parser.advance(&mut self.input) {
                Ok(Some(reply)) => {
                    if let Some(opening) = &self.opening {
                        opening.reply(&reply);
                    }
                    return Ok(reply);
                }
                Ok(None) => {}
                Err(bad) => return Err(SendFailure::protocol(phase, bad.to_string())),
            }
            let stream = self.stream.as_mut().ok_or_else(|| closed_failure(phase))?;
            self.input.reserve(READ_BYTES);
            match timeout_at(deadline, stream.read_buf(&mut (&mut self.input).limit(READ_BYTES))).await {
                Ok(Ok(0)) => return Err(closed_failure(phase)),
                Ok(Ok(_)) => {}
                Ok(Err(error)) => return Err(io_failure(phase, &error)),
                Err(_) => return Err(SendFailure::timeout(phase)),
            }
        }
    }

    /// Checks, without waiting, whether the peer has sent something or closed the connection. Costs no system
    /// call if nothing has happened.
    pub(super) fn listen(&mut self) -> UnaskedInput {
        if self.has_unread() {
            return UnaskedInput::Words;
        }
        let Some(stream) = self.stream.as_mut() else {
            return UnaskedInput::Closed;
        };
        self.input.reserve(READ_BYTES);
        match stream.read_buf(&mut (&mut self.input).limit(READ_BYTES)).now_or_never() {
            None => UnaskedInput::Nothing,
            Some(Ok(0) | Err(_)) => UnaskedInput::Closed,
            Some(Ok(_)) => UnaskedInput::Words,
        }
    }

    /// Writes the final dot. The failure says whether any part of it may have reached the peer.
    pub(super) async fn write_dot(&mut self, deadline: Instant) -> Result<(), DotFailure> {
        let Some(stream) = self.stream.as_mut() else {
            return Err(DotFailure { failure: closed_failure(FailurePhase::Dot), begun: false });
        };
        // Under TLS a failed write may still have put a record on the wire, so the dot counts as begun at
        // once.
        let mut begun = stream.is_tls();
        let mut rest = DOT;
        let write = async {
            while !rest.is_empty() {
                let written = stream.write(rest).await?;
                if written == 0 {
                    return Err(io::ErrorKind::WriteZero.into());
                }
                begun = true;
                rest = &rest[written..];
            }
            stream.flush().await
        };
        let result = match timeout_at(deadline, write).await {
            Ok(written) => written.map_err(|error| io_failure(FailurePhase::Dot, &error)),
            Err(_) => Err(SendFailure::timeout(FailurePhase::Dot)),
        };
        result.map_err(|failure| DotFailure { failure, begun })
    }

    /// Ends the TLS session and the connection in good order, before `deadline`.
    pub(super) async fn shutdown(&mut self, deadline: Instant) {
        if let Some(mut stream) = self.stream.take() {
            // The relay has received QUIT; an error while closing changes nothing.
            timeout_at(deadline, stream.shutdown()).await.ok();
        }
    }
}

fn io_failure(phase: FailurePhase, error: &io::Error) -> SendFailure {
    SendFailure::io(phase, error.kind(), error.to_string())
}
