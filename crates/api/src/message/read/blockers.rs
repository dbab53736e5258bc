//! What blocks a message: the facts from the store, and the blockers they imply.
//!
//! Suspensions are facts of the lane; limits and circuits are facts of the account. They also appear in
//! `held_by`, which [`postway_store::MessageBlockers`] reads for many messages at once. Everything else is
//! known from the message itself.

use std::time::Duration;

use postway_domain::{
    Account, AccountLimits, LimitSpan, MessageState as Stands, MessageStatus, Time,
    destination::{ANY_DOMAIN, limit_of_name},
    limit::LimitBehavior,
    message::ScheduleReason,
};
use postway_store::record::{
    AccountKey, LimitUse, MessageSummary, OpenCircuit, SuspensionRecord, SuspensionScope,
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{http::error::ApiError, message::view::FailureView, state::AppState};

/// The code of a message that dispatch returned because its receiving domain is at its limit.
const DESTINATION_LIMIT: &str = "destination_limit";

/// A message that has been due for this long waits for its turn; before, it is about to be sent.
const TURN_AFTER: Duration = Duration::from_secs(2);

/// One thing that a message waits for.
#[derive(Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = Gate)]
pub(crate) struct MessageBlocker {
    /// `tenant`, `batch`, `account`, `limit`, `circuit`, `destination`, `schedule`, `retry`, `doubt`,
    /// `clock`, `node` or `turn`.
    #[schema(example = "retry")]
    pub(crate) gate: &'static str,
    /// The reason, as a sentence.
    pub(crate) reason: String,
    /// When it ends; null if someone must act.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub(crate) until: Option<Time>,
}

/// What the store knows about the message's lane and account.
#[derive(Debug, Default)]
pub(crate) struct BlockerFacts {
    pub(crate) suspensions: Vec<SuspensionRecord>,
    pub(crate) account: Option<Account>,
    pub(crate) circuit: Option<OpenCircuit>,
    pub(crate) limits: AccountLimits,
    pub(crate) used: Vec<(LimitSpan, LimitUse)>,
    /// The tenant's messages that are being sent.
    pub(crate) sending: i64,
    /// Whether the answering node is isolated and sends nothing.
    pub(crate) is_isolated: bool,
}

impl BlockerFacts {
    /// The facts about this message.
    pub(crate) async fn about(app: &AppState, message: &MessageSummary, now: Time) -> Result<Self, ApiError> {
        let lane = &message.lane;
        let Some(account) = app.store.account(&lane.tenant, &lane.account).await? else {
            let suspensions = app.store.suspensions(&lane.tenant).await?;
            return Ok(Self { suspensions, ..Self::default() });
        };
        let key = AccountKey { tenant: lane.tenant.clone(), account: lane.account.clone() };
        let sending = match is_overdue(message, now) {
            true => app
                .store
                .stats(Some(&lane.tenant), now)
                .await?
                .by_status
                .get(&MessageStatus::Sending)
                .copied(),
            false => None,
        };
        let limits = account.settings.effective_limits(now);
        Ok(Self {
            suspensions: app.store.suspensions(&lane.tenant).await?,
            circuit: app.store.circuit(&key).await?,
            used: if limits.is_unlimited() { Vec::new() } else { app.store.used(&key, &limits, now).await? },
            limits,
            account: Some(account),
            sending: sending.unwrap_or(0),
            is_isolated: app.roster.is_isolated(),
        })
    }

    /// Everything that blocks this message.
    pub(crate) fn gates(&self, message: &MessageSummary, now: Time) -> Vec<MessageBlocker> {
        let mut gates = self.suspended(message);
        match &self.account {
            None => {
                let account = &message.lane.account;
                let reason = format!("there is no account `{account}`: create it, or cancel the message");
                gates.push(MessageBlocker { gate: "account", reason, until: None });
            }
            Some(account) => {
                gates.extend(self.used_up(account));
                gates.extend(self.open_circuit(account, now));
            }
        }
        let has_circuit = gates.iter().any(|gate| gate.gate == "circuit");
        let longest = self.account.as_ref().map(|account| account.settings.retry.longest());
        match longest.filter(|longest| is_beyond(message, now.plus(*longest))) {
            Some(_) => gates.push(set_back(message)),
            None => gates.extend(own_gate(message, has_circuit, now)),
        }
        let is_due = message.due_at.is_some_and(|due_at| due_at <= now);
        if gates.is_empty() && is_due && self.is_isolated {
            let reason = "the node that answers is isolated: its heartbeat does not reach the database, so it sends nothing \
                 until it does; another node may send it";
            gates.push(MessageBlocker { gate: "node", reason: reason.to_owned(), until: None });
        }
        if gates.is_empty() && is_overdue(message, now) {
            gates.push(self.busy_destination(message).unwrap_or_else(|| self.turn()));
        }
        gates
    }

    /// Nothing else blocks it, and its lane names receiving domains that its account limits.
    fn busy_destination(&self, message: &MessageSummary) -> Option<MessageBlocker> {
        let own = &self.account.as_ref()?.settings.destinations;
        let names = message.lane.destination.as_ref()?.names();
        let limits: Vec<String> = names
            .filter_map(|name| limit_of_name(own, name))
            .map(|(name, limit)| {
                let domain = if name.starts_with(ANY_DOMAIN) { "its receiving domain" } else { &name };
                let bounds = [(limit.per_second, "a second"), (limit.connections, "at once")];
                let bounds = bounds.iter().filter(|(most, _)| *most > 0);
                let bounds: Vec<String> = bounds.map(|(most, of)| format!("{most} {of}")).collect();
                format!("{domain} ({})", bounds.join(", "))
            })
            .collect();
        let account = &message.lane.account;
        let reason = format!(
            "it is due and waits until the account `{account}` may send more to {}: mail before it uses that up",
            limits.join(" and ")
        );
        (!limits.is_empty()).then_some(MessageBlocker { gate: "destination", reason, until: None })
    }

    /// Nothing else blocks it: it waits behind other messages, of its tenant or of all.
    fn turn(&self) -> MessageBlocker {
        let reason = match self.sending {
            0 => "it is due and waits for its turn: other mail is being sent".to_owned(),
            sending => format!(
                "it is due and waits for its turn: {sending} messages of its tenant are being sent and have no answer yet; \
                 a tenant or an account whose mail does not end gets no more places until some of it does"
            ),
        };
        MessageBlocker { gate: "turn", reason, until: None }
    }

    fn suspended(&self, message: &MessageSummary) -> Vec<MessageBlocker> {
        let holding = self.suspensions.iter().filter(|suspension| suspension.scope.holds(&message.lane));
        let gate = |suspension: &SuspensionRecord| {
            let what = match &suspension.scope {
                SuspensionScope::Tenant => "its tenant".to_owned(),
                SuspensionScope::Batch(code) => format!("its batch `{code}`"),
                SuspensionScope::Account(id) => format!("its account `{id}`"),
            };
            let reason = format!("{what} is suspended since {} until it is activated", suspension.since);
            MessageBlocker { gate: suspension.scope.as_str(), reason, until: None }
        };
        holding.map(gate).collect()
    }

    fn used_up(&self, account: &Account) -> Vec<MessageBlocker> {
        // Beyond a rejecting limit mail does not wait: it fails.
        if self.limits.behavior == LimitBehavior::Reject {
            return Vec::new();
        }
        let gate = |(span, used): &(LimitSpan, LimitUse)| {
            let limit = self.limits.over(*span)?;
            let is_used_up = used.count >= i64::from(limit);
            let reason = format!(
                "the account `{}` may send {limit} per {}, and has used them up{}",
                account.id,
                span.as_str(),
                if *span == LimitSpan::Day { meanwhile(account) } else { String::new() }
            );
            is_used_up.then_some(MessageBlocker { gate: "limit", reason, until: used.frees_at })
        };
        self.used.iter().filter_map(gate).collect()
    }

    fn open_circuit(&self, account: &Account, now: Time) -> Option<MessageBlocker> {
        let circuit = self.circuit.as_ref()?;
        let OpenCircuit { code, reason, opened_at, open_until, .. } = circuit;
        let reason = format!(
            "the account `{}` is at fault since {opened_at} ({code}): {reason}{}",
            account.id,
            meanwhile(account)
        );
        // When the time is over, one message at a time is tried.
        Some(MessageBlocker { gate: "circuit", reason, until: Some((*open_until).max(now)) })
    }
}

/// Whether its next attempt is later than any can be.
fn is_beyond(message: &MessageSummary, latest: Time) -> bool {
    let waits =
        matches!(message.state, Stands::Ready | Stands::Scheduled(ScheduleReason::Retry) | Stands::InDoubt);
    waits && message.due_at.is_some_and(|due_at| due_at > latest)
}

fn set_back(message: &MessageSummary) -> MessageBlocker {
    let reason = "its time was set by a clock that was ahead, and is later than any attempt can be; it is made due as soon as \
                  that is noticed";
    MessageBlocker { gate: "clock", reason: reason.to_owned(), until: message.due_at }
}

/// Whether it could have been sent a while ago.
fn is_overdue(message: &MessageSummary, now: Time) -> bool {
    message.due_at.is_some_and(|due_at| due_at.plus(TURN_AFTER) < now)
}

fn meanwhile(account: &Account) -> String {
    let fallback = account.settings.fallback.as_ref();
    fallback.map_or_else(String::new, |other| format!("; its fallback `{other}` may send it meanwhile"))
}

/// What the message itself waits for.
fn own_gate(message: &MessageSummary, has_circuit: bool, now: Time) -> Option<MessageBlocker> {
    // A message that is due waits for nothing but its turn.
    let until = message.due_at.filter(|due| *due > now);
    let failure = message.error.as_deref().map(FailureView::read);
    match message.state {
        Stands::Scheduled(ScheduleReason::SendAt) if until.is_some() => Some(MessageBlocker {
            gate: "schedule",
            reason: "its send_at has not come yet".to_owned(),
            until,
        }),
        Stands::Scheduled(ScheduleReason::Retry) if until.is_some() => {
            Some(MessageBlocker { gate: "retry", reason: last_failure(message, failure.as_ref()), until })
        }
        Stands::Scheduled(ScheduleReason::Fetch) if until.is_some() => {
            Some(MessageBlocker { gate: "retry", reason: failed_fetch(failure.as_ref()), until })
        }
        Stands::Ready if until.is_some() => {
            let Some(failure) = failure else {
                // Nothing returned it: it was due when it became ready, by a clock that was set back since.
                let reason = "it became ready when this machine's clock was ahead, and is due at that time";
                return Some(MessageBlocker { gate: "clock", reason: reason.to_owned(), until });
            };
            let words = failure.words().unwrap_or("too many messages or connections at once").to_owned();
            match failure.code() {
                Some(DESTINATION_LIMIT) => Some(MessageBlocker { gate: "destination", reason: words, until }),
                // Returned because its account failed, and the account's circuit is not known to be open yet.
                _ if !has_circuit => Some(MessageBlocker {
                    gate: "circuit",
                    reason: last_failure(message, Some(&failure)),
                    until,
                }),
                _ => None,
            }
        }
        Stands::InDoubt => Some(doubt(message)),
        Stands::Accepted
        | Stands::Validating
        | Stands::Ready
        | Stands::Scheduled(_)
        | Stands::Sending { .. }
        | Stands::Sent
        | Stands::Failed
        | Stands::Invalid
        | Stands::Suppressed
        | Stands::Cancelled
        | Stands::Expired
        | Stands::Captured => None,
    }
}

fn last_failure(message: &MessageSummary, failure: Option<&FailureView>) -> String {
    match failure.and_then(FailureView::words) {
        Some(words) => format!("attempt {} failed: {words}", message.attempt),
        None => format!("attempt {} failed", message.attempt),
    }
}

fn failed_fetch(failure: Option<&FailureView>) -> String {
    let words = failure.and_then(FailureView::words).unwrap_or("what it needs could not be fetched");
    format!("it is not composed yet: {words}; it is tried again")
}

fn doubt(message: &MessageSummary) -> MessageBlocker {
    let reason = match message.due_at {
        Some(_) => {
            "the relay's answer to the last attempt was lost; it is sent again under the same Message-ID"
        }
        None => {
            "the relay's answer to an attempt was lost; it is held until someone says what became of it \
             (resolve)"
        }
    };
    MessageBlocker { gate: "doubt", reason: reason.to_owned(), until: message.due_at }
}
