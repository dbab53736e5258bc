//! Gauges of the busiest streams: their mail of the last day. They show a sender's standing
//! before a mailbox provider does.
//!
//! A process shows at most [`STREAMS_MAX`] streams in its life, so that streams that come and go cannot fill
//! a monitoring system with labels. The statistics of the API have all of them.

use std::{collections::BTreeSet, time::Duration};

use postway_domain::{TenantId, id::StreamId};
use postway_store::{StoreError, record::StreamCounts};

use super::{DutyPace, HousekeepingDuties};

/// The most streams that a process shows.
pub(super) const STREAMS_MAX: usize = 100;
const MEASURE_EVERY: Duration = Duration::from_secs(5 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The streams that have gauges.
#[derive(Default)]
pub(super) struct ShownStreams(BTreeSet<(TenantId, StreamId)>);

impl ShownStreams {
    /// Whether the stream has gauges, now at the latest.
    fn show(&mut self, stream: (TenantId, StreamId)) -> bool {
        self.0.contains(&stream) || self.0.len() < STREAMS_MAX && self.0.insert(stream)
    }
}

impl HousekeepingDuties {
    pub(super) async fn keep_measuring_streams(&self, pace: &DutyPace) {
        let mut shown = ShownStreams::default();
        while pace.wait_for_duty().await {
            pace.wait_after("stream gauges", self.measure_streams(&mut shown).await).await;
        }
    }

    async fn measure_streams(&self, shown: &mut ShownStreams) -> Result<Duration, StoreError> {
        let since = self.clock.now().minus(DAY);
        let busiest = self.store.busiest_streams(since, STREAMS_MAX as u32).await?;
        let mut quiet = shown.0.clone();
        for row in busiest {
            let stream = (row.tenant, row.stream);
            quiet.remove(&stream);
            if shown.show(stream.clone()) {
                set(&stream, &row.counts);
            }
        }
        // Those that sent nothing, or less than a hundred others.
        for stream in quiet {
            set(&stream, &StreamCounts::default());
        }
        Ok(MEASURE_EVERY)
    }
}

fn set((tenant, stream): &(TenantId, StreamId), counts: &StreamCounts) {
    let labels = [("tenant", tenant.to_string()), ("stream", stream.to_string())];
    metrics::gauge!("postway_stream_sent", &labels).set(counts.sent as f64);
    metrics::gauge!("postway_stream_bounced", &labels).set(counts.bounced as f64);
    metrics::gauge!("postway_stream_complained", &labels).set(counts.complained as f64);
    metrics::gauge!("postway_stream_unsubscribed", &labels).set(counts.unsubscribed as f64);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_shows_so_many_streams_and_no_more() {
        let mut shown = ShownStreams::default();
        let stream = |n: usize| ("acme".parse().unwrap(), format!("s{n}").parse().unwrap());
        assert!((0..STREAMS_MAX).all(|n| shown.show(stream(n))));
        assert!(!shown.show(stream(STREAMS_MAX)) && shown.show(stream(7)));
    }
}
