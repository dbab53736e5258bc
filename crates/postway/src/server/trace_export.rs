//! Exports finished spans to a collector, as OTLP over HTTP, in JSON.
//!
//! One task takes batches from the tracer's queue and posts them, each within [`EXPORT_MAX`] and at most
//! [`TRIES_MAX`] times. Meanwhile the queue fills up to its bound, and what does not fit is dropped: a
//! collector that is away or slow costs spans, and neither memory nor the time of any mail. What was exported
//! and what was dropped is counted.

use std::{sync::Arc, time::Duration};

use postway_domain::Clock;
use postway_net::{
    AddressGuard,
    http::{HttpAnswer, HttpAuth, HttpClient, HttpSettings, SendRequest},
};
use postway_trace::{
    FinishedSpan, Tracer,
    otlp::{self, ResourceAttributes},
};
use reqwest::Url;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::config::TracingSection;

/// The most spans of one export.
const BATCH_SPANS_MAX: usize = 512;
/// How long spans wait until enough of them have come.
const EXPORT_EVERY: Duration = Duration::from_secs(1);
/// How long one export may take.
const EXPORT_MAX: Duration = Duration::from_secs(10);
/// How often a batch is tried.
const TRIES_MAX: u32 = 3;
/// The wait before the second try; it doubles for the third.
const RETRY_WAIT: Duration = Duration::from_secs(1);
/// The longest wait that a collector may ask for.
const RETRY_WAIT_MAX: Duration = Duration::from_secs(30);
/// How long the last spans may take when the server stops.
const LAST_EXPORT_MAX: Duration = Duration::from_secs(3);
/// How much of an answer is read.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// Starts tracing, if a collector is configured. `instance` names this process among others.
pub fn start(section: &TracingSection, clock: Arc<dyn Clock>, instance: String) -> Option<TraceExporter> {
    let url = section.endpoint.clone()?;
    let installed = postway_trace::install(Tracer::new(section.ratio, clock.now().as_millis()));
    if !installed {
        tracing::warn!("traces were started already");
    }
    // The operator chose the collector, which mostly is in a private network.
    let everywhere = [("0.0.0.0", 0), ("::", 0)].map(|(address, bits)| (address.parse().ok(), bits));
    let everywhere = everywhere.into_iter().filter_map(|(address, bits)| Some((address?, bits))).collect();
    let resource = vec![
        ("service.name".into(), section.service_name.clone()),
        ("service.version".into(), env!("CARGO_PKG_VERSION").to_owned()),
        ("service.instance.id".into(), instance),
    ];
    let named = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    Some(TraceExporter {
        tracer: postway_trace::tracer()?,
        clock,
        http: HttpClient::new(AddressGuard::new(everywhere).into(), HttpSettings::default()),
        url,
        headers: section.headers.iter().map(|one| named(&one.name, one.value.expose())).collect(),
        resource,
        queue_dropped: 0,
        is_away: false,
    })
}

/// Sends finished spans away.
pub struct TraceExporter {
    tracer: &'static Tracer,
    clock: Arc<dyn Clock>,
    http: HttpClient,
    url: Url,
    headers: Vec<(String, String)>,
    resource: ResourceAttributes,
    /// What the queue has dropped and was counted.
    queue_dropped: u64,
    /// Whether the last export failed, so that this is logged once.
    is_away: bool,
}

/// Why a batch was not taken.
enum ExportFailure {
    /// Another try may help, after this wait if the collector asked for one.
    Transient(String, Option<Duration>),
    /// The collector does not want it.
    Refused(String),
}

impl TraceExporter {
    /// Exports until it is stopped, and then what is left.
    pub async fn run(mut self, stop: CancellationToken) {
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                () = self.tracer.filled() => {}
                () = sleep(EXPORT_EVERY) => {}
            }
            self.tracer.set_clock(self.clock.now().as_millis());
            if !self.export_unless_stopped(&stop).await {
                return;
            }
            self.count_queue();
        }
        self.export_unless_stopped(&stop).await;
    }

    /// Exports what waits. If the server stops meanwhile, a short time is left for it; false if that was too
    /// short.
    async fn export_unless_stopped(&mut self, stop: &CancellationToken) -> bool {
        let cut = async {
            stop.cancelled().await;
            sleep(LAST_EXPORT_MAX).await;
        };
        tokio::select! {
            biased;
            () = self.export_all(stop) => true,
            () = cut => {
                tracing::debug!("the last spans were not exported in time");
                false
            }
        }
    }

    async fn export_all(&mut self, stop: &CancellationToken) {
        loop {
            let spans = self.tracer.take(BATCH_SPANS_MAX);
            if spans.is_empty() {
                return;
            }
            let is_last = spans.len() < BATCH_SPANS_MAX;
            self.export(spans, stop).await;
            self.count_queue();
            if is_last {
                return;
            }
        }
    }

    /// Exports a batch, or drops it. While the server stops it is tried once.
    async fn export(&mut self, spans: Vec<FinishedSpan>, stop: &CancellationToken) {
        let count = spans.len() as u64;
        let body = otlp::request(&self.resource, env!("CARGO_PKG_VERSION"), &spans);
        drop(spans);
        let request = SendRequest {
            url: self.url.clone(),
            body: body.into(),
            content_type: "application/json".to_owned(),
            headers: self.headers.clone(),
            auth: HttpAuth::None,
            timeout: EXPORT_MAX,
            answer_bytes_max: ANSWER_BYTES_MAX,
        };
        let mut wait = RETRY_WAIT;
        let mut tries = 1;
        let why = loop {
            match read_answer(self.http.send(&request).await) {
                Ok(rejected) => {
                    self.note_success();
                    let rejected = rejected.min(count);
                    count_spans("rejected", rejected);
                    count_spans("exported", count - rejected);
                    return;
                }
                Err(ExportFailure::Transient(_, asked)) if tries < TRIES_MAX && !stop.is_cancelled() => {
                    let pause = asked.unwrap_or(wait).min(RETRY_WAIT_MAX);
                    tokio::select! {
                        biased;
                        () = stop.cancelled() => {}
                        () = sleep(pause) => {}
                    }
                    (tries, wait) = (tries + 1, wait * 2);
                }
                Err(ExportFailure::Transient(why, _) | ExportFailure::Refused(why)) => break why,
            }
        };
        count_spans("dropped", count);
        if !self.is_away {
            self.is_away = true;
            tracing::warn!(error = why, "the collector takes no spans; they are dropped until it does");
        }
    }

    fn note_success(&mut self) {
        if self.is_away {
            self.is_away = false;
            tracing::info!("the collector takes spans again");
        }
    }

    /// Counts what found the queue full.
    fn count_queue(&mut self) {
        let dropped = self.tracer.counts().dropped;
        count_spans("dropped", dropped - self.queue_dropped);
        self.queue_dropped = dropped;
    }
}

fn count_spans(outcome: &'static str, count: u64) {
    metrics::counter!("postway_trace_spans_total", "outcome" => outcome).increment(count);
}

/// How many spans of a batch the collector rejected, or why it took none.
fn read_answer(answer: Result<HttpAnswer, postway_net::http::HttpError>) -> Result<u64, ExportFailure> {
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) if error.is_transient() => return Err(ExportFailure::Transient(error.to_string(), None)),
        Err(error) => return Err(ExportFailure::Refused(error.to_string())),
    };
    let status = answer.status;
    if answer.is_success() {
        return Ok(rejected_spans(&answer.body));
    }
    let why = format!("it answered {status}");
    // The statuses that OTLP calls retryable.
    match status {
        429 | 502..=504 => Err(ExportFailure::Transient(why, answer.retry_after())),
        _ => Err(ExportFailure::Refused(why)),
    }
}

/// The number in `{"partialSuccess":{"rejectedSpans":"3"}}`; an answer without it rejects nothing.
fn rejected_spans(body: &[u8]) -> u64 {
    let read = || {
        let body: serde_json::Value = serde_json::from_slice(body).ok()?;
        let count = body.get("partialSuccess")?.get("rejectedSpans")?;
        count.as_u64().or_else(|| count.as_str()?.parse().ok())
    };
    read().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_may_reject_some_of_the_spans() {
        assert_eq!(rejected_spans(br#"{"partialSuccess":{"rejectedSpans":"3","errorMessage":"no"}}"#), 3);
        assert_eq!(rejected_spans(br#"{"partialSuccess":{"rejectedSpans":4}}"#), 4);
        for none in [&b"{}"[..], b"", b"ok", br#"{"partialSuccess":{}}"#, br#"{"partialSuccess":[1]}"#] {
            assert_eq!(rejected_spans(none), 0);
        }
    }
}
