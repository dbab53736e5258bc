//! The span of a transaction that stores mail: under the first message that is traced, with links to the
//! others, because one commit belongs to all of them.

use postway_trace::{Span, SpanKind};

use super::Job;

/// Begins the span, unless none of the messages is traced.
pub(super) fn begin(jobs: &[&Job]) -> Span {
    if !postway_trace::is_on() {
        return Span::default();
    }
    let messages = jobs.iter().filter_map(|job| match job {
        Job::Accept(messages) => Some(messages),
        Job::WireCommit(_)
        | Job::Apply(_)
        | Job::Claim(_)
        | Job::Prepare(_)
        | Job::Directory(_)
        | Job::Blobs(_)
        | Job::Retain(_)
        | Job::Report(_)
        | Job::Inbound(_)
        | Job::Hook(_)
        | Job::BulkStep(_)
        | Job::Ping => None,
    });
    let mut contexts = messages.flatten().filter_map(|message| message.trace).filter(|one| one.is_sampled);
    let Some(first) = contexts.next() else { return Span::default() };
    let mut span = Span::child(Some(first), SpanKind::Internal, "commit");
    span.set("postway.commit.jobs", || jobs.len());
    // Messages of one call share their place.
    let mut latest = first;
    for context in contexts {
        if context != latest {
            span.link(context);
            latest = context;
        }
    }
    span
}
