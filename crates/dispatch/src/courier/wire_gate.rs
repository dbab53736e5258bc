//! The wire gate on the store: makes the wire commit, the permission for the final dot, durable.

use async_trait::async_trait;
use postway_store::record::{ClaimedMessage, SendingPermit, WireCommit};
use postway_trace::{Span, SpanKind, TraceContext};
use tokio::{task::JoinHandle, time::Instant};

use super::permit;
use crate::{
    context::DispatchContext,
    outcome::{ReturnReason, wire_marks::recipient_marks},
    transport::{GateRefused, RecipientReply, WireGate},
};

/// What an attempt has written and committed so far. Kept outside the transport, so that it survives a panic
/// in it.
#[derive(Default)]
pub(crate) struct WireProgress {
    /// The relay may have seen a part of the mail: MAIL was written, or the body of an API call may have
    /// been.
    pub begun: bool,
    /// The wire commit is durable.
    pub committed: bool,
    /// The wire commit recorded which recipients may be in doubt and which were refused; otherwise all may be
    /// in doubt.
    pub marked: bool,
    /// Why this process did not let the mail begin or end, if it was not the store that refused.
    pub return_reason: Option<ReturnReason>,
}

/// The gate of one attempt; it asks the store for one wire commit.
pub(crate) struct StoreGate<'a> {
    pub context: &'a DispatchContext,
    pub job: &'a ClaimedMessage,
    /// The permit that the mail begins with.
    pub permit: &'a mut Option<SendingPermit>,
    /// The write of this courier's previous outcome. It shares the commit, and must be durable before the
    /// dot.
    pub settling: &'a mut Option<JoinHandle<()>>,
    /// What this gate has allowed so far.
    pub wire: &'a mut WireProgress,
    /// The span of the attempt.
    pub trace: Option<TraceContext>,
}

impl StoreGate<'_> {
    /// Refuses while other nodes may take over the message: both would send it.
    fn refuse_if_isolated(&mut self) -> Result<(), GateRefused> {
        if !self.context.config.roster.is_isolated() {
            return Ok(());
        }
        self.wire.return_reason = Some(ReturnReason::Isolated);
        Err(GateRefused)
    }
}

#[async_trait]
impl WireGate for StoreGate<'_> {
    fn begin(&mut self) -> Result<(), GateRefused> {
        self.refuse_if_isolated()?;
        if permit::has_expired(self.permit.as_ref(), self.context.clock.now()) {
            self.wire.return_reason = Some(ReturnReason::PermitExpired);
            return Err(GateRefused);
        }
        self.wire.begun = true;
        Ok(())
    }

    async fn begin_after_wait(&mut self) -> Result<(), GateRefused> {
        // If it cannot be renewed, `begin` refuses.
        permit::refresh(self.context, self.permit).await;
        self.begin()
    }

    async fn commit(&mut self, replies: &[RecipientReply]) -> Result<(), GateRefused> {
        self.refuse_if_isolated()?;
        let asked = Instant::now();
        let _span = Span::child(self.trace, SpanKind::Internal, "wire commit");
        let recipients = recipient_marks(self.job, replies);
        let marked = !recipients.is_empty();
        let commit = WireCommit {
            uid: self.job.uid,
            lane: self.job.lane.clone(),
            via: self.job.via.clone(),
            token: self.job.token,
            version: self.job.version,
            at: self.context.clock.now(),
            recipients,
            resend: self.job.resend.then_some(self.job.attempt),
        };
        let applied = self.context.store.wire_commit(vec![commit]).await;
        if let Some(settling) = self.settling.take()
            && let Err(error) = settling.await
        {
            tracing::error!(%error, "settling a message ended badly");
        }
        match applied {
            Ok(applied) if applied == [true] => {
                (self.wire.committed, self.wire.marked) = (true, marked);
                // If the answer took long, another node may have taken over the message and sent it
                // meanwhile.
                if !self.context.config.roster.is_trusted_since(asked) {
                    self.wire.return_reason = Some(ReturnReason::Isolated);
                    return Err(GateRefused);
                }
                Ok(())
            }
            Ok(_) => Err(GateRefused),
            Err(error) => {
                tracing::warn!(uid = %self.job.uid, %error, "the permission to send could not be stored");
                Err(GateRefused)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use postway_domain::{
        AccountLimits, Clock, LimitSpan, Tenant, Time, liveness::ISOLATED_AFTER, secret::SecretKey,
    };
    use postway_net::{AddressGuard, TlsClient};
    use postway_store::{
        DirectoryStore as _, IntakeStore as _, LivenessRoster, WorkStore as _,
        blob::BlobStorage,
        conformance::sample::{self, Sample, at},
        memory::MemoryStore,
        record::{AccountWant, ClaimRequest},
    };

    use super::*;
    use crate::{
        DispatchConfig,
        context::{capacity_events::CapacityEvents, in_flight::InFlightMessages},
        transport::{RelayReply, SmtpDeadlines, TcpDialer},
    };

    struct StoppedClock(Time);

    impl Clock for StoppedClock {
        fn now(&self) -> Time {
            self.0
        }
    }

    /// One leased message, and the context of a gate for it.
    async fn leased() -> (DispatchContext, ClaimedMessage) {
        let store = Arc::new(MemoryStore::shared());
        store.create_tenant(Tenant::new(sample::tenant(), "Acme", at(0))).await.unwrap();
        store.create_account(sample::account(sample::TENANT, sample::ACCOUNT)).await.unwrap();
        store.accept(vec![Sample::new(1).build()]).await.unwrap();
        let wants = vec![AccountWant::unlimited(sample::relay(), 1, false)];
        let request = ClaimRequest { lease: sample::lease(1, at(0)), now: at(0), wants, inline_bytes_max: 9 };
        let job = store.claim(request).await.unwrap().remove(0);
        let config = DispatchConfig {
            roster: Arc::new(LivenessRoster::new(sample::incarnation(1), true)),
            ehlo_name: String::new(),
            in_flight_max: 1,
            deadlines: SmtpDeadlines::default(),
            drain: Duration::ZERO,
            guard: Arc::new(AddressGuard::default()),
            dial: Arc::new(TcpDialer),
        };
        let secret_key = Arc::new(SecretKey::from_bytes(&[7; SecretKey::BYTES]).unwrap());
        let tokens = postway_oauth::OAuthTokens::new(
            store.clone(),
            Arc::new(StoppedClock(at(0))),
            secret_key.clone(),
            config.guard.clone(),
        );
        let context = DispatchContext {
            config,
            store,
            depot: Arc::new(BlobStorage::memory()),
            clock: Arc::new(StoppedClock(at(0))),
            secret_key,
            tokens,
            tls: TlsClient::new(),
            large_bodies: tokio::sync::Semaphore::new(1),
            tasks: tokio_util::task::TaskTracker::new(),
            in_flight: InFlightMessages::default(),
            stop: tokio_util::sync::CancellationToken::new(),
            capacity_events: CapacityEvents::default(),
        };
        (context, job)
    }

    /// Commits with a store answer that takes `takes` and heartbeats at `beats_s`. Returns whether the gate
    /// opened, and whether the commit is durable.
    async fn commit(takes: Duration, beats_s: &[u64]) -> (bool, bool) {
        let (context, job) = leased().await;
        let (mut wire, roster) = (WireProgress::default(), context.config.roster.clone());
        roster.note_beat(Instant::now());
        let beats: Vec<_> = beats_s.iter().map(|at| Instant::now() + Duration::from_secs(*at)).collect();
        tokio::spawn(async move {
            for at in beats {
                tokio::time::sleep_until(at).await;
                roster.note_beat(Instant::now());
            }
        });
        let mut settling = Some(tokio::spawn(tokio::time::sleep(takes)));
        let mut gate = StoreGate {
            context: &context,
            job: &job,
            permit: &mut None,
            settling: &mut settling,
            wire: &mut wire,
            trace: None,
        };
        let yes = RecipientReply::Accepted(RelayReply { code: 250, enhanced: None, text: String::new() });
        let said = gate.commit(&[yes]).await;
        (said.is_ok(), wire.committed)
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_comes_after_others_may_have_sent_the_mail_is_no_permission() {
        let past = ISOLATED_AFTER + Duration::from_secs(2);
        assert_eq!(commit(Duration::from_secs(1), &[]).await, (true, true));
        assert_eq!(commit(past, &[]).await, (false, true), "it is durable, and not to be used");
        assert_eq!(commit(past, &[7]).await, (false, true), "seen again, after a gap");
        assert_eq!(commit(past, &[2, 4, 6]).await, (true, true), "slow, and seen all the while");
    }

    #[tokio::test]
    async fn a_permit_that_ran_out_while_a_connection_was_made_is_renewed() {
        let (mut context, job) = leased().await;
        context.config.roster.note_beat(Instant::now());
        context.store.accept(vec![Sample::new(2).build()]).await.unwrap();
        let limits = AccountLimits { per_minute: 5, ..AccountLimits::default() };
        let wants = vec![AccountWant { limits, ..AccountWant::unlimited(sample::relay(), 1, false) }];
        let request = ClaimRequest { lease: sample::lease(2, at(0)), now: at(0), wants, inline_bytes_max: 9 };
        let mut permit = context.store.claim(request).await.unwrap().remove(0).permit;
        let late = permit.as_ref().unwrap().use_by;
        context.clock = Arc::new(StoppedClock(late));
        let (mut wire, mut settling) = (WireProgress::default(), None);
        let mut gate = StoreGate {
            context: &context,
            job: &job,
            permit: &mut permit,
            settling: &mut settling,
            wire: &mut wire,
            trace: None,
        };
        assert!(gate.begin().is_err(), "an expired permit counts for a time in which it was not used");
        assert!(gate.begin_after_wait().await.is_ok());
        assert!(wire.begun);
        assert_eq!(permit.map(|permit| permit.debited_at), Some(late));

        // Beyond its window the store cannot know what else was debited meanwhile.
        context.clock = Arc::new(StoppedClock(at(9_000_000)));
        let (mut wire, mut permit) = (WireProgress::default(), Some(expired(late)));
        let mut gate = StoreGate {
            context: &context,
            job: &job,
            permit: &mut permit,
            settling: &mut settling,
            wire: &mut wire,
            trace: None,
        };
        assert!(gate.begin_after_wait().await.is_err());
        assert!(matches!(wire.return_reason, Some(ReturnReason::PermitExpired)) && !wire.begun);
    }

    fn expired(debited_at: Time) -> SendingPermit {
        let spans = vec![LimitSpan::Minute];
        SendingPermit {
            key: sample::relay(),
            debited_at,
            use_by: LimitSpan::Minute.use_by(debited_at),
            spans,
        }
    }
}
