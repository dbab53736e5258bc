//! A keep-alive HTTP/1.1 connection that reads only those parts of an answer that the bench needs.
//!
//! It understands answers with a Content-Length, which is what the server gives; anything else is an error.

use std::time::Duration;

use anyhow::Context as _;
use serde::Deserialize;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use uuid::Uuid;

use super::load::LoadPlan;

const ANSWER_BYTES_MAX: usize = 8 * 1024 * 1024;

/// A keep-alive connection to the server.
#[derive(Debug)]
pub struct BenchConnection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// An answer whose body is in the connection's buffer.
#[derive(Debug)]
pub struct BenchAnswer {
    pub status: u16,
    pub retry_after: Option<Duration>,
    body_at: usize,
}

impl BenchConnection {
    /// Connects.
    pub async fn open(address: &str) -> anyhow::Result<Self> {
        let stream =
            TcpStream::connect(address).await.with_context(|| format!("cannot connect to {address}"))?;
        stream.set_nodelay(true).context("cannot set TCP_NODELAY")?;
        Ok(Self { stream, buffer: Vec::with_capacity(16 * 1024) })
    }

    /// Posts one message of the plan, and returns its uid.
    pub async fn post_one(&mut self, plan: &LoadPlan, number: u32) -> anyhow::Result<Uuid> {
        #[derive(Deserialize)]
        struct AcceptedMessage {
            uid: Uuid,
        }
        let mut request = Vec::new();
        plan.write(&mut request, number, number + 1);
        let answer = self.exchange(&request).await?;
        anyhow::ensure!(answer.status == 202, "the server answered {}", answer.status);
        let accepted: AcceptedMessage =
            serde_json::from_slice(self.body(&answer)).context("the answer has no uid")?;
        Ok(accepted.uid)
    }

    /// The body of the last answer.
    pub fn body(&self, answer: &BenchAnswer) -> &[u8] {
        &self.buffer[answer.body_at..]
    }

    /// Sends one request and reads its complete answer.
    pub async fn exchange(&mut self, request: &[u8]) -> anyhow::Result<BenchAnswer> {
        self.stream.write_all(request).await?;
        self.buffer.clear();
        let (answer, length) = loop {
            if let Some(found) = parse_head(&self.buffer)? {
                break found;
            }
            self.read_more().await?;
        };
        while self.buffer.len() < answer.body_at + length {
            self.read_more().await?;
        }
        Ok(answer)
    }

    async fn read_more(&mut self) -> anyhow::Result<()> {
        anyhow::ensure!(self.buffer.len() < ANSWER_BYTES_MAX, "the server's answer is too long");
        anyhow::ensure!(
            self.stream.read_buf(&mut self.buffer).await? > 0,
            "the server closed the connection"
        );
        Ok(())
    }
}

/// The head of an answer and the length of its body, once the head is complete.
fn parse_head(bytes: &[u8]) -> anyhow::Result<Option<(BenchAnswer, usize)>> {
    let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else {
        return Ok(None);
    };
    let head = std::str::from_utf8(&bytes[..end]).context("the answer's head is not text")?;
    let status =
        head.split(' ').nth(1).and_then(|status| status.parse().ok()).context("the answer has no status")?;
    let value_of = |name: &str| {
        head.lines().skip(1).filter_map(|line| line.split_once(':')).find_map(|(header, value)| {
            header.eq_ignore_ascii_case(name).then(|| value.trim().parse::<u64>().ok()).flatten()
        })
    };
    let length = value_of("content-length").context("the answer has no length")? as usize;
    let retry_after = value_of("retry-after").map(Duration::from_secs);
    Ok(Some((BenchAnswer { status, retry_after, body_at: end + 4 }, length)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_when_its_head_is_complete() {
        assert!(parse_head(b"HTTP/1.1 202 Accepted\r\nContent-Le").unwrap().is_none());
        let whole = b"HTTP/1.1 503 Busy\r\nretry-after: 2\r\nContent-Length: 2\r\n\r\n{}";
        let (answer, length) = parse_head(whole).unwrap().unwrap();
        assert_eq!((answer.status, length, answer.retry_after), (503, 2, Some(Duration::from_secs(2))));
        assert_eq!(&whole[answer.body_at..], b"{}");
        assert!(parse_head(b"garbage\r\n\r\n").is_err());
    }
}
