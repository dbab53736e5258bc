//! The load: many connections that post as fast as the server answers.
//!
//! It shares the machine with the server it measures, so it must cost little: requests are prebuilt bytes in
//! which only a number changes, written to plain keep-alive connections, and of an answer only what is needed
//! is read. 429 and 503 are obeyed; a lost connection is opened again and the request repeated, which its id
//! makes safe.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use indicatif::ProgressBar;
use serde::Deserialize;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::args::BenchMode;
use super::connection::BenchConnection;
use crate::cli::client::ApiClient;

/// The digits of a message's number: fixed, so that every request is as long as the last.
const DIGITS: usize = 8;
/// The placeholder of a message's number.
pub const NUMBER: &str = "########";
const RETRY_AFTER_MAX: Duration = Duration::from_secs(5);
const REPEATS_MAX: u32 = 20;

/// The size of a load, and of its requests.
#[derive(Clone, Copy, Debug)]
pub struct LoadShape {
    pub size: u32,
    pub messages: u32,
    pub per_request: u32,
    pub concurrency: u32,
    pub mode: BenchMode,
}

/// Requests, ready but for their numbers.
#[derive(Clone, Debug)]
pub struct LoadPlan {
    /// `host:port` of the server.
    address: String,
    shape: LoadShape,
    head: String,
    /// The JSON before the messages in a body, and after.
    frame: (String, &'static str),
    message: Vec<u8>,
    /// The offsets of the number in `message`.
    number_at: Vec<usize>,
    /// The status that says that it was accepted.
    taken: u16,
}

/// The result of a load.
#[derive(Debug, Default)]
pub struct LoadResult {
    pub accepted: u64,
    pub rejected: u64,
    pub repeated: u64,
    /// The latency of each request, in microseconds.
    pub latencies: Vec<u64>,
    pub elapsed: Duration,
    pub problem: Option<String>,
}

#[derive(Debug, Default)]
struct LoadCounters {
    next: AtomicU32,
    rejected: AtomicU64,
    repeated: AtomicU64,
}

impl LoadPlan {
    /// Prepares requests for the account, all in the one batch by which they are found again.
    pub fn new(client: &ApiClient, account: &str, batch: &str, shape: LoadShape) -> Self {
        let path = match shape.mode {
            BenchMode::Single => "/v1/messages",
            BenchMode::Batch => "/v1/messages/batch",
        };
        let same = format!(r#""account":"{account}","batch":"{batch}","from":"Bench <bench@example.com>""#);
        let own = format!(
            r#""id":"{batch}-{NUMBER}","to":["r{NUMBER}@example.net"],"subject":"Bench {NUMBER}","text":"{}""#,
            text(shape.size as usize)
        );
        let (opening, closing, message) = match shape.mode {
            BenchMode::Single => (String::new(), "", format!("{{{same},{own}}}")),
            BenchMode::Batch => {
                (format!(r#"{{"defaults":{{{same}}},"messages":["#), "]}", format!("{{{own}}}"))
            }
        };
        Self::of(client, path, (&opening, closing), message, 202, shape)
    }

    /// Messages posted to a path as the JSON that is given, with [`NUMBER`] wherever a message's number
    /// stands. Those of a request stand in a frame, and all are taken where its status says so.
    pub fn of(
        client: &ApiClient,
        path: &str,
        frame: (&str, &'static str),
        message: String,
        taken: u16,
        shape: LoadShape,
    ) -> Self {
        let url = client.base();
        let host = url.host_str().unwrap_or("127.0.0.1");
        let address = format!("{host}:{}", url.port_or_known_default().unwrap_or(80));
        let base = url.path().trim_end_matches('/');
        let head = format!(
            "POST {base}{path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n{}",
            client.identity_lines()
        );
        let number_at = message.match_indices(NUMBER).map(|(at, _)| at).collect();
        let (frame, message) = ((frame.0.to_owned(), frame.1), message.into_bytes());
        Self { address, shape, head, frame, message, number_at, taken }
    }

    /// `host:port` of the server.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Writes the request for the messages `from..to`, in place of what `request` held.
    pub fn write(&self, request: &mut Vec<u8>, from: u32, to: u32) {
        let count = (to - from) as usize;
        let commas = count - 1;
        let length = self.frame.0.len() + count * self.message.len() + commas + self.frame.1.len();
        request.clear();
        request.extend_from_slice(self.head.as_bytes());
        request.extend_from_slice(format!("Content-Length: {length}\r\n\r\n").as_bytes());
        request.extend_from_slice(self.frame.0.as_bytes());
        for number in from..to {
            if number > from {
                request.push(b',');
            }
            let start = request.len();
            request.extend_from_slice(&self.message);
            let digits = format!("{number:0DIGITS$}");
            for at in &self.number_at {
                request[start + at..start + at + DIGITS].copy_from_slice(digits.as_bytes());
            }
        }
        request.extend_from_slice(self.frame.1.as_bytes());
    }
}

/// Lines of readable text, as they stand in a JSON string.
pub fn text(size: usize) -> String {
    const LINE: &str = "The quick brown fox jumps over the lazy dog, and the mail goes out on time.\n";
    LINE.chars().cycle().take(size).collect::<String>().replace('\n', "\\n")
}

/// Posts everything, until done or the deadline. The plans have one shape and share its messages among them;
/// the connections are dealt out to them in turn.
pub async fn run(plans: Vec<LoadPlan>, deadline: Instant, bar: &ProgressBar) -> anyhow::Result<LoadResult> {
    let shape = plans.first().context("a load needs somewhere to go")?.shape;
    let plans: Vec<Arc<LoadPlan>> = plans.into_iter().map(Arc::new).collect();
    let shared = Arc::new(LoadCounters::default());
    let started = Instant::now();
    let mut tasks = JoinSet::new();
    let connections = shape.concurrency.min(shape.messages.div_ceil(shape.per_request));
    for plan in plans.iter().cycle().take(connections as usize) {
        let (plan, shared, bar) = (Arc::clone(plan), Arc::clone(&shared), bar.clone());
        tasks.spawn(async move {
            let mut done = LoadResult::default();
            let posted =
                tokio::time::timeout_at(deadline, post_until_done(&plan, &shared, &bar, &mut done)).await;
            done.problem = match posted {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(format!("{error:#}")),
                Err(_) => Some("not everything was accepted in time".to_owned()),
            };
            done
        });
    }
    let mut all = LoadResult::default();
    while let Some(done) = tasks.join_next().await {
        let done = done.context("a connection of the load ended badly")?;
        all.accepted += done.accepted;
        all.latencies.extend(done.latencies);
        all.problem = all.problem.or(done.problem);
    }
    all.rejected = shared.rejected.load(Ordering::Relaxed);
    all.repeated = shared.repeated.load(Ordering::Relaxed);
    all.elapsed = started.elapsed();
    match all.problem {
        Some(problem) if all.accepted == 0 && shape.messages > 0 => Err(anyhow!(problem)),
        problem => Ok(LoadResult { problem, ..all }),
    }
}

async fn post_until_done(
    plan: &LoadPlan,
    shared: &LoadCounters,
    bar: &ProgressBar,
    done: &mut LoadResult,
) -> anyhow::Result<()> {
    let mut connection = BenchConnection::open(&plan.address).await?;
    let mut request = Vec::new();
    loop {
        let from = shared.next.fetch_add(plan.shape.per_request, Ordering::Relaxed);
        if from >= plan.shape.messages {
            return Ok(());
        }
        let to = (from + plan.shape.per_request).min(plan.shape.messages);
        plan.write(&mut request, from, to);
        let started = Instant::now();
        let accepted = post(&mut connection, plan, shared, &request, to - from).await?;
        done.latencies.push(started.elapsed().as_micros() as u64);
        done.accepted += accepted;
        shared.rejected.fetch_add(u64::from(to - from) - accepted, Ordering::Relaxed);
        bar.inc(accepted);
    }
}

/// Posts one request until it is accepted, and returns the number of accepted messages.
async fn post(
    connection: &mut BenchConnection,
    plan: &LoadPlan,
    shared: &LoadCounters,
    request: &[u8],
    messages: u32,
) -> anyhow::Result<u64> {
    for _ in 0..REPEATS_MAX {
        match connection.exchange(request).await {
            Ok(answer) if answer.status == plan.taken => {
                return match plan.shape.mode {
                    BenchMode::Single => Ok(messages.into()),
                    BenchMode::Batch => accepted_of(connection.body(&answer)),
                };
            }
            Ok(answer) if matches!(answer.status, 429 | 503) => {
                tokio::time::sleep(
                    answer.retry_after.unwrap_or(Duration::from_millis(100)).min(RETRY_AFTER_MAX),
                )
                .await;
            }
            Ok(answer) => {
                let body =
                    String::from_utf8_lossy(connection.body(&answer)).chars().take(500).collect::<String>();
                bail!("the server answered {}: {body}", answer.status);
            }
            Err(_) => *connection = BenchConnection::open(&plan.address).await?,
        }
        shared.repeated.fetch_add(1, Ordering::Relaxed);
    }
    bail!("the server did not accept a request in {REPEATS_MAX} tries")
}

fn accepted_of(body: &[u8]) -> anyhow::Result<u64> {
    #[derive(Deserialize)]
    struct AcceptedBatch {
        accepted: u64,
    }
    let answer: AcceptedBatch =
        serde_json::from_slice(body).context("the batch's answer is not understood")?;
    Ok(answer.accepted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ConfigSecret;
    use serde_json::Value;

    fn plan(mode: BenchMode) -> LoadPlan {
        let client = ApiClient::new("http://127.0.0.1:1", Some(ConfigSecret::new("the-key")), None).unwrap();
        let shape = LoadShape { size: 300, messages: 5, per_request: 3, concurrency: 1, mode };
        LoadPlan::new(&client, "relay", "run-1", shape)
    }

    fn request(mode: BenchMode, from: u32, to: u32) -> (String, Value) {
        let mut bytes = Vec::new();
        plan(mode).write(&mut bytes, from, to);
        let text = String::from_utf8(bytes).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.ends_with(&format!("Content-Length: {}", body.len())), "{head}");
        (head.to_owned(), serde_json::from_str(body).unwrap())
    }

    #[test]
    fn a_single_request_is_one_numbered_message() {
        let (head, body) = request(BenchMode::Single, 7, 8);
        assert!(head.starts_with("POST /v1/messages HTTP/1.1\r\n"), "{head}");
        assert!(head.contains("Authorization: Bearer the-key\r\n"), "{head}");
        assert_eq!(body["id"], "run-1-00000007");
        assert_eq!(body["to"][0], "r00000007@example.net");
        assert_eq!(body["account"], "relay");
        assert_eq!(body["text"].as_str().unwrap().len(), 300);
    }

    #[test]
    fn a_batch_request_has_each_message_once() {
        let (head, body) = request(BenchMode::Batch, 3, 5);
        assert!(head.starts_with("POST /v1/messages/batch HTTP/1.1\r\n"), "{head}");
        assert_eq!(body["defaults"]["batch"], "run-1");
        let ids: Vec<&str> =
            body["messages"].as_array().unwrap().iter().map(|m| m["id"].as_str().unwrap()).collect();
        assert_eq!(ids, ["run-1-00000003", "run-1-00000004"]);
    }

    #[test]
    fn only_the_accepted_count_of_a_batch_is_read() {
        let body = br#"{"accepted":2,"rejected":1,"results":[{"id":"a","status":"ready"}]}"#;
        assert_eq!(accepted_of(body).unwrap(), 2);
    }
}
