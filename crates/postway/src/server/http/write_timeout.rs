//! A connection whose client must read the answers it asked for.
//!
//! A client that asks and never reads, or reads a byte a minute, fills the system's buffers and would keep
//! its connection, and the answer in memory, for as long as it likes. Here an answer that waits must get on
//! by a least number of bytes in every stretch of time; otherwise writing is an error, which ends the
//! connection. The stretch begins when the client does not take what there is, and ends when it has taken all
//! of it.

use std::{
    future::Future,
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Sleep},
};

/// How much a client must take of what waits for it: 8 KiB a second, on average over 75 s.
pub const LEAST: LeastWriteRate = LeastWriteRate { bytes: 75 * 8 * 1024, within: Duration::from_secs(75) };

/// A number of bytes that must be taken in every stretch of time.
#[derive(Clone, Copy, Debug)]
pub struct LeastWriteRate {
    /// The number of bytes.
    pub bytes: usize,
    /// The stretch of time.
    pub within: Duration,
}

/// A connection whose writes fail if the client reads too slowly.
pub struct WriteTimeout<S> {
    stream: S,
    least: LeastWriteRate,
    /// Runs while something waits to be written.
    waiting: Option<PendingWrite>,
}

struct PendingWrite {
    ends: Pin<Box<Sleep>>,
    moved: usize,
}

impl<S> WriteTimeout<S> {
    /// Wraps a stream whose client must read at least at this rate.
    pub fn new(stream: S, least: LeastWriteRate) -> Self {
        Self { stream, least, waiting: None }
    }

    /// The result of a write, or an error if the client has read too little for too long.
    fn check_rate(
        &mut self,
        context: &mut Context<'_>,
        wrote: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        let LeastWriteRate { bytes, within } = self.least;
        if let Poll::Ready(wrote) = wrote {
            if let (Some(waiting), Ok(moved)) = (&mut self.waiting, &wrote) {
                waiting.moved += moved;
            }
            return Poll::Ready(wrote);
        }
        let begin = || PendingWrite { ends: Box::pin(tokio::time::sleep(within)), moved: 0 };
        let waiting = self.waiting.get_or_insert_with(begin);
        while waiting.ends.as_mut().poll(context).is_ready() {
            if waiting.moved < bytes {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            waiting.moved = 0;
            waiting.ends.as_mut().reset(Instant::now() + within);
        }
        Poll::Pending
    }

    /// The result of a flush or shutdown, which ends the wait once it is done.
    fn check_rate_at_end(
        &mut self,
        context: &mut Context<'_>,
        ended: Poll<io::Result<()>>,
    ) -> Poll<io::Result<()>> {
        if ended.is_ready() {
            self.waiting = None;
        }
        self.check_rate(context, ended.map_ok(|()| 0)).map_ok(|_| ())
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteTimeout<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let wrote = Pin::new(&mut this.stream).poll_write(context, bytes);
        this.check_rate(context, wrote)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let wrote = Pin::new(&mut this.stream).poll_write_vectored(context, slices);
        this.check_rate(context, wrote)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let flushed = Pin::new(&mut this.stream).poll_flush(context);
        this.check_rate_at_end(context, flushed)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let shut = Pin::new(&mut this.stream).poll_shutdown(context);
        this.check_rate_at_end(context, shut)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    const PACE: LeastWriteRate = LeastWriteRate { bytes: 64, within: Duration::from_secs(60) };

    /// Reads `bytes` bytes every `every`, until the end.
    async fn read_slowly(mut client: tokio::io::DuplexStream, bytes: usize, every: Duration) -> usize {
        let (mut piece, mut taken) = (vec![0; bytes], 0);
        loop {
            tokio::time::sleep(every).await;
            match client.read(&mut piece).await.unwrap() {
                0 => return taken,
                read => taken += read,
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_never_reads_is_left_after_a_while() {
        let (_client, server) = tokio::io::duplex(64);
        let (mut server, started) = (WriteTimeout::new(server, PACE), tokio::time::Instant::now());
        let error = server.write_all(&[0; 100]).await.unwrap_err();
        assert_eq!((error.kind(), started.elapsed().as_secs()), (io::ErrorKind::TimedOut, 60));
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_takes_a_byte_now_and_then_is_left_too() {
        let (client, server) = tokio::io::duplex(64);
        let (mut server, started) = (WriteTimeout::new(server, PACE), tokio::time::Instant::now());
        let reads = tokio::spawn(read_slowly(client, 1, Duration::from_secs(2)));
        let error = server.write_all(&[0; 1000]).await.unwrap_err();
        assert_eq!((error.kind(), started.elapsed().as_secs()), (io::ErrorKind::TimedOut, 60));
        drop(server);
        assert!(reads.await.unwrap() < 200);
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_reads_slowly_but_gets_on_is_waited_for() {
        let (client, server) = tokio::io::duplex(64);
        let (mut server, started) = (WriteTimeout::new(server, PACE), tokio::time::Instant::now());
        let reads = tokio::spawn(read_slowly(client, 32, Duration::from_secs(20)));
        server.write_all(&[0; 3200]).await.unwrap();
        assert!(started.elapsed() > Duration::from_secs(20 * 90));
        drop(server);
        assert_eq!(reads.await.unwrap(), 3200);
    }

    #[tokio::test(start_paused = true)]
    async fn what_has_been_taken_whole_counts_no_more() {
        let (mut client, server) = tokio::io::duplex(64);
        let mut server = WriteTimeout::new(server, PACE);
        for _ in 0..5 {
            let reads = async {
                tokio::time::sleep(Duration::from_secs(50)).await;
                client.read_exact(&mut [0; 65]).await.unwrap();
            };
            let (wrote, ()) = tokio::join!(server.write_all(&[0; 65]), reads);
            wrote.unwrap();
            server.flush().await.unwrap();
            tokio::time::sleep(Duration::from_secs(1000)).await;
        }
    }
}
