//! A connection on which the head of a request must arrive in time.
//!
//! From its first byte on a head has a deadline, and the first head of a connection from the connection on; a
//! client that sends a byte now and then does not get more. Between requests a connection may be idle for
//! longer, as clients with pools expect, and the bodies have deadlines of their own. Past the deadline
//! reading fails, which ends the connection.

use std::{
    future::Future,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Sleep, sleep},
};

use super::connection_limit::ConnectionActivity;

/// A connection whose heads have a deadline.
pub struct HeadDeadline<S> {
    stream: S,
    occupancy: Arc<ConnectionActivity>,
    patience: Duration,
    /// Runs while a head arrives.
    arriving: Option<Pin<Box<Sleep>>>,
    /// The number of requests at the time the deadline was started.
    begun: u64,
    /// Whether only the first head has a deadline.
    is_first_only: bool,
}

impl<S> HeadDeadline<S> {
    /// Wraps a stream whose heads must arrive within `patience`.
    pub fn new(stream: S, occupancy: Arc<ConnectionActivity>, patience: Duration) -> Self {
        let (arriving, begun) = (Some(Box::pin(sleep(patience))), occupancy.begun());
        Self { stream, occupancy, patience, arriving, begun, is_first_only: false }
    }

    /// The same for HTTP/2, where only the first head has a deadline: what arrives on an idle connection need
    /// not be a head, and connections that stay idle are closed by their own deadline.
    pub fn of_first(stream: S, occupancy: Arc<ConnectionActivity>, patience: Duration) -> Self {
        Self { is_first_only: true, ..Self::new(stream, occupancy, patience) }
    }

    /// Whether the head that is arriving has taken too long.
    fn is_late(&mut self, context: &mut Context<'_>) -> bool {
        let begun = self.occupancy.begun();
        if begun != self.begun {
            // It has arrived; what is read now is a body, or the next one.
            (self.begun, self.arriving) = (begun, None);
        }
        self.arriving.as_mut().is_some_and(|arriving| arriving.as_mut().poll(context).is_ready())
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for HeadDeadline<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.is_late(context) {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        let before = buffer.filled().len();
        let read = Pin::new(&mut this.stream).poll_read(context, buffer);
        let has_begun = buffer.filled().len() > before && this.occupancy.is_idle();
        if has_begun && this.arriving.is_none() && !this.is_first_only {
            this.arriving = Some(Box::pin(sleep(this.patience)));
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for HeadDeadline<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let flushed = Pin::new(&mut this.stream).poll_flush(context);
        if matches!(flushed, Poll::Ready(Ok(()))) {
            this.occupancy.flushed();
        }
        flushed
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}
