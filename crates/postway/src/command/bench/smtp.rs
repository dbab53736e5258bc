//! How fast mail is accepted over SMTP, beside the same mail over HTTP: in turns, on one server of this
//! binary.
//!
//! The mail is for an account that is suspended, so what is measured is acceptance alone, each mail durable
//! when it is answered. Both ways have as many connections, and each connection has one mail under way. Fails
//! if a mail that was answered is not in the store, or if not all are accepted in time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context as _, bail, ensure};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use indicatif::ProgressBar;
use reqwest::Method;
use serde::Serialize;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use super::acceptance::{AcceptanceFigures, AcceptanceRound};
use super::args::{BenchArgs, BenchMode};
use super::audit::{self, StoreAudit};
use super::compare::order;
use super::load::{self, LoadPlan, LoadResult, NUMBER};
use super::measure::ResourceMeter;
use super::server::{self, BenchServer, ServerRecipe, free_port};
use super::trial::NOWHERE;
use super::{create_account, progress, run_name};
use crate::cli::client::RequestBody;
use crate::cli::failure::CommandFailure;
use crate::cli::output::CommandOutput;

/// The default number of sessions.
const SESSIONS: u32 = 20;
const REPLY_BYTES_MAX: usize = 64 * 1024;

/// The result of the measurement.
#[derive(Debug, Serialize)]
pub struct SmtpBench {
    messages: u32,
    sessions: u32,
    http: AcceptanceFigures,
    smtp: AcceptanceFigures,
    /// The ratio of SMTP to HTTP, of the median rounds.
    accepted_per_second_ratio: f64,
    cpu_ratio: Option<f64>,
    lost: u64,
    problem: Option<String>,
    warnings: Vec<String>,
}

/// Measures on a server of its own.
pub async fn run(
    args: &BenchArgs,
    recipe: ServerRecipe,
    deadline: Instant,
) -> Result<SmtpBench, CommandFailure> {
    let address = format!("127.0.0.1:{}", free_port()?);
    let recipe = recipe
        .with("POSTWAY_SMTP_LISTEN", address.clone())
        .with("POSTWAY_SMTP_MAX_CONNECTIONS_PER_CLIENT", "2000".to_owned())
        .with("POSTWAY_SMTP_MAX_CONNECTIONS", "2000".to_owned());
    let nodes = recipe.start(1).await?;
    let found = measure(args, &recipe, &nodes, &address, deadline).await;
    let stopped = server::stop(nodes).await;
    let mut found = found?;
    found.warnings.extend(stopped?);
    Ok(found)
}

async fn measure(
    args: &BenchArgs,
    recipe: &ServerRecipe,
    nodes: &[BenchServer],
    address: &str,
    deadline: Instant,
) -> Result<SmtpBench, CommandFailure> {
    let client = &nodes[0].client;
    let sessions = args.concurrency.unwrap_or(SESSIONS);
    let (mut rounds, mut lost, mut problem) = ([Vec::new(), Vec::new()], 0, None);
    for side in order(args.rounds, 2) {
        let run = run_name();
        let account = create_account(client, &run, NOWHERE, 1, Value::Null).await?;
        client.call(Method::POST, &["v1", "accounts", &account, "suspend"], &[], RequestBody::Empty).await?;
        let before = ResourceMeter::read(nodes).await?;
        let bar = progress(u64::from(args.messages), ["HTTP", "SMTP"][side]);
        let mut loaded = match side {
            0 => {
                let mut shape = args.shape(args.messages, BenchMode::Single);
                shape.concurrency = sessions;
                load::run(vec![LoadPlan::new(client, &account, &run, shape)], deadline, &bar).await?
            }
            _ => {
                let letter = NumberedMail::new(&account, &run, args.size);
                let post =
                    BenchSender { address: address.to_owned(), login: login(recipe.admin_key()), letter };
                post.send_all(args.messages, sessions, deadline, &bar).await?
            }
        };
        bar.finish_and_clear();
        let after = ResourceMeter::read(nodes).await?;
        let mut books = StoreAudit::default();
        audit::read(client, &run, &mut books).await?;
        lost += loaded.accepted.saturating_sub(books.listed);
        rounds[side].push(AcceptanceRound::of(&mut loaded, &before, &after));
        problem = problem.or(loaded.problem);
    }
    let [http, smtp] = rounds.map(|rounds| AcceptanceFigures::of(&rounds));
    Ok(SmtpBench {
        messages: args.messages,
        sessions,
        accepted_per_second_ratio: smtp.accepted_per_second / http.accepted_per_second.max(0.001),
        cpu_ratio: smtp.cpu_seconds_per_1000.zip(http.cpu_seconds_per_1000).map(|(smtp, http)| smtp / http),
        http,
        smtp,
        lost,
        problem,
        warnings: Vec::new(),
    })
}

fn login(key: &str) -> String {
    format!("EHLO bench.example\r\nAUTH PLAIN {}\r\n", BASE64_STANDARD.encode(format!("\0default\0{key}")))
}

/// A mail, ready but for its number.
struct NumberedMail {
    text: String,
    /// The offsets of the number.
    number_at: Vec<usize>,
}

impl NumberedMail {
    fn new(account: &str, batch: &str, size: u32) -> Self {
        const LINE: &str = "The quick brown fox jumps over the lazy dog, and the mail goes out on time.\r\n";
        let number = NUMBER;
        let body: String = LINE.chars().cycle().take(size as usize).collect();
        let text = format!(
            "From: Bench <bench@example.com>\r\nTo: r{number}@example.net\r\nSubject: Bench {number}\r\n\
             X-Postway-Account: {account}\r\nX-Postway-Batch: {batch}\r\nX-Postway-Client-Id: {batch}-{number}\r\n\r\n\
             {}\r\n.\r\n",
            body.trim_end_matches(['\r', '\n'])
        );
        Self { number_at: text.match_indices(number).map(|(at, _)| at).collect(), text }
    }

    /// Writes it, in place of what `out` held.
    fn write(&self, out: &mut Vec<u8>, number: u32) {
        out.clear();
        out.extend_from_slice(self.text.as_bytes());
        let digits = format!("{number:08}");
        for at in &self.number_at {
            out[*at..at + digits.len()].copy_from_slice(digits.as_bytes());
        }
    }
}

/// The login and the mail of a sender.
struct BenchSender {
    address: String,
    login: String,
    letter: NumberedMail,
}

impl BenchSender {
    async fn send_all(
        self,
        messages: u32,
        sessions: u32,
        deadline: Instant,
        bar: &ProgressBar,
    ) -> anyhow::Result<LoadResult> {
        let (post, next) = (Arc::new(self), Arc::new(AtomicU32::new(0)));
        let started = Instant::now();
        let mut tasks = JoinSet::new();
        for _ in 0..sessions.min(messages) {
            let (post, next, bar) = (post.clone(), next.clone(), bar.clone());
            tasks.spawn(async move {
                let mut done = LoadResult::default();
                let sent = timeout_at(deadline, post.send(messages, &next, &bar, &mut done)).await;
                done.problem = match sent {
                    Ok(sent) => sent.err().map(|error| format!("{error:#}")),
                    Err(_) => Some("not everything was accepted in time".to_owned()),
                };
                done
            });
        }
        let mut all = LoadResult::default();
        while let Some(done) = tasks.join_next().await {
            let done = done.context("a session of the load ended badly")?;
            all.accepted += done.accepted;
            all.latencies.extend(done.latencies);
            all.problem = all.problem.or(done.problem);
        }
        all.elapsed = started.elapsed();
        match all.problem {
            Some(problem) if all.accepted == 0 && messages > 0 => bail!(problem),
            problem => Ok(LoadResult { problem, ..all }),
        }
    }

    async fn send(
        &self,
        messages: u32,
        next: &AtomicU32,
        bar: &ProgressBar,
        done: &mut LoadResult,
    ) -> anyhow::Result<()> {
        let mut session = BenchSmtpSession::open(&self.address).await?;
        session.expect(b"220").await?;
        session.say(self.login.as_bytes()).await?;
        session.expect(b"250").await?;
        session.expect(b"235").await?;
        let mut mail = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= messages {
                return session.say(b"QUIT\r\n").await;
            }
            let started = Instant::now();
            let envelope =
                format!("MAIL FROM:<bench@example.com>\r\nRCPT TO:<r{number:08}@example.net>\r\nDATA\r\n");
            session.say(envelope.as_bytes()).await?;
            for code in [b"250", b"250", b"354"] {
                session.expect(code).await?;
            }
            self.letter.write(&mut mail, number);
            session.say(&mail).await?;
            session.expect(b"250").await?;
            done.latencies.push(started.elapsed().as_micros() as u64);
            done.accepted += 1;
            bar.inc(1);
        }
    }
}

/// An SMTP client that reads only the code of a reply.
struct BenchSmtpSession {
    stream: TcpStream,
    unread: Vec<u8>,
}

impl BenchSmtpSession {
    async fn open(address: &str) -> anyhow::Result<Self> {
        let stream =
            TcpStream::connect(address).await.with_context(|| format!("cannot connect to {address}"))?;
        stream.set_nodelay(true).context("cannot set TCP_NODELAY")?;
        Ok(Self { stream, unread: Vec::with_capacity(4 * 1024) })
    }

    async fn say(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        Ok(self.stream.write_all(bytes).await?)
    }

    /// Reads one reply, which must have this code.
    async fn expect(&mut self, code: &[u8; 3]) -> anyhow::Result<()> {
        loop {
            while let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
                let is_last = self.unread.get(3) == Some(&b' ');
                if is_last && !self.unread.starts_with(code) {
                    bail!("the server answered {}", String::from_utf8_lossy(&self.unread[..end]).trim_end());
                }
                self.unread.drain(..=end);
                if is_last {
                    return Ok(());
                }
            }
            ensure!(self.unread.len() < REPLY_BYTES_MAX, "the server's answer is too long");
            ensure!(self.stream.read_buf(&mut self.unread).await? > 0, "the server closed the connection");
        }
    }
}

impl SmtpBench {
    /// Why the run is a failure, if it is one.
    pub fn problem(&self) -> Option<String> {
        match self.lost {
            0 => self.problem.clone(),
            lost => Some(format!("{lost} messages that were accepted are not in the store")),
        }
    }

    /// The table for people.
    pub fn render(&self, output: CommandOutput) -> String {
        let names = ["accepted/s", "CPU-seconds per 1,000", "p50 (ms)", "p99 (ms)", "each round, accepted/s"];
        let cpu = self.cpu_ratio.map(|ratio| format!("{ratio:.2}")).unwrap_or_default();
        let ratios = [
            format!("{:.2}", self.accepted_per_second_ratio),
            cpu,
            String::new(),
            String::new(),
            String::new(),
        ];
        let columns = self.http.column().into_iter().zip(self.smtp.column()).zip(ratios);
        let rows = names
            .into_iter()
            .zip(columns)
            .map(|(name, ((http, smtp), ratio))| vec![name.to_owned(), http, smtp, ratio]);
        let table = output.table(&["median", "HTTP", "SMTP", "ratio"], rows);
        let warnings: String = self.warnings.iter().map(|warning| format!("\nwarning: {warning}")).collect();
        format!(
            "{table}\n\n{} messages a round, {} sessions, lost {}{warnings}",
            self.messages, self.sessions, self.lost
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_has_its_number_everywhere_and_ends_with_its_dot() {
        let mut mail = Vec::new();
        NumberedMail::new("relay", "run-1", 300).write(&mut mail, 17);
        let text = String::from_utf8(mail).unwrap();
        assert!(
            text.contains("To: r00000017@example.net\r\n")
                && text.contains("X-Postway-Client-Id: run-1-00000017\r\n")
        );
        assert!(
            !text.contains('#')
                && text.ends_with("\r\n.\r\n")
                && !text.replace("\r\n", "").contains(['\r', '\n'])
        );
    }
}
