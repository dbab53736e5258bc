//! The body of an answer: its request is in progress until it is written.
//!
//! Over HTTP/2 a client decides for each answer how much of it may be sent, so a client that gives no leave
//! would keep the answer in memory although its socket takes everything. There an answer goes out in small
//! pieces, and the connection ends if the client leaves one of them for too long (`connection.rs` looks).

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use axum::body::Body;
use hyper::body::{Body as HttpBody, Bytes, Frame, SizeHint};

use super::connection_limit::RequestInProgress;

/// The size of a piece: no larger than what a client grants by default.
const PIECE_BYTES: usize = 32 * 1024;

/// An answer that is being written.
pub struct TrackedResponseBody {
    body: Body,
    /// What is left of the frame that is sent in pieces.
    rest: Bytes,
    in_pieces: bool,
    in_progress: RequestInProgress,
}

impl TrackedResponseBody {
    /// Wraps the body; over HTTP/2 it is sent in pieces.
    pub fn new(body: Body, in_pieces: bool, in_progress: RequestInProgress) -> Self {
        Self { body, rest: Bytes::new(), in_pieces, in_progress }
    }

    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.rest.is_empty() {
            let frame = match Pin::new(&mut self.body).poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => frame,
                other => return other,
            };
            match frame.into_data() {
                Ok(data) if data.len() > PIECE_BYTES => self.rest = data,
                Ok(data) => return Poll::Ready(Some(Ok(Frame::data(data)))),
                Err(frame) => return Poll::Ready(Some(Ok(frame))),
            }
        }
        let piece = self.rest.split_to(self.rest.len().min(PIECE_BYTES));
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }
}

impl HttpBody for TrackedResponseBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = self.get_mut();
        if !this.in_pieces {
            return Pin::new(&mut this.body).poll_frame(context);
        }
        let polled = this.poll_piece(context);
        // While the body itself has nothing yet, as a stream of events, the client is not to blame.
        this.in_progress.note_piece(matches!(polled, Poll::Ready(Some(Ok(_)))));
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (mut hint, rest) = (self.body.size_hint(), self.rest.len() as u64);
        // The upper bound first: a lower one above it is refused by a panic.
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper + rest);
        }
        hint.set_lower(hint.lower() + rest);
        hint
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::http::connection_limit::ConnectionSlots;

    #[tokio::test]
    async fn a_large_answer_goes_out_in_pieces_and_whole() {
        let slot = ConnectionSlots::new(1, 1).take(None).unwrap();
        let text: String = ('a'..='z').cycle().take(100_000).collect();
        let in_progress = RequestInProgress::begin(&slot.occupancy);
        let mut body = TrackedResponseBody::new(Body::from(text.clone()), true, in_progress);
        let (mut read, mut pieces) = (Vec::new(), 0);
        while let Some(frame) = std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await
        {
            let piece = frame.unwrap().into_data().unwrap();
            assert!(piece.len() <= PIECE_BYTES);
            (read, pieces) = ([&read[..], &piece[..]].concat(), pieces + 1);
            assert_eq!(body.size_hint().exact(), Some((text.len() - read.len()) as u64));
        }
        assert!(body.is_end_stream());
        assert_eq!((read, pieces), (text.into_bytes(), 4));
    }
}
