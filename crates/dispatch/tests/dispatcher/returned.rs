//! Mail that is returned without an attempt is counted like any other that enters a state.

use std::time::Duration;

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use postway_domain::MessageStatus;
use postway_store::blob::BlobStorage;

use super::{
    DispatcherStage,
    relay::{PipeRelay, RelayManners},
};

/// How many messages have entered this state, according to the metrics.
fn entered(metrics: &PrometheusHandle, state: MessageStatus) -> usize {
    let name = format!("postway_state_transitions_total{{state=\"{}\"}} ", state.as_str());
    let text = metrics.render();
    text.lines().find_map(|line| line.strip_prefix(&name)?.parse().ok()).unwrap_or(0)
}

#[tokio::test(start_paused = true)]
async fn mail_that_a_stop_finds_waiting_is_counted_as_ready() {
    const MAILS: usize = 6;
    let recorder = PrometheusBuilder::new().build_recorder();
    let metrics = recorder.handle();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let manners = RelayManners { rcpt_after: Duration::from_secs(20), ..RelayManners::default() };
    let stage = DispatcherStage::set(PipeRelay::with(manners), BlobStorage::memory(), |_| {}).await;
    stage.keep_beating();
    let mut uids = Vec::new();
    for number in 1..=MAILS {
        uids.push(stage.accept(number as u32).await);
    }
    // The first is on the wire, and there is one connection: others are leased and wait for it.
    while stage.relay.begun().is_empty() || entered(&metrics, MessageStatus::Sending) < 2 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let DispatcherStage { store, dispatcher, relay, .. } = stage;
    assert!(dispatcher.drain().await);
    let mut ready = 0;
    for uid in uids {
        ready += usize::from(super::status_in(&store, uid).await == MessageStatus::Ready);
    }
    let sent = relay.taken().len();
    assert_eq!((sent, ready), (1, MAILS - 1));
    let (leased, returned) =
        (entered(&metrics, MessageStatus::Sending), entered(&metrics, MessageStatus::Ready));
    assert!(returned > 0 && leased == returned + sent, "{leased} leased, {returned} returned");
}
