//! Reads the overview's data.

use std::collections::BTreeMap;

use postway_domain::{MessageStatus, SubscriberKind, TenantId, Time, quota::QuotaDay};
use postway_store::record::{DomainCheckRecord, MessageFilter, MessageSummary, OpenCircuit, QuotaUse};
use serde::Serialize;
use utoipa::ToSchema;

use super::holders::{self, HolderView};
use crate::{
    admin::node::{self, NodeView},
    auth::Caller,
    http::error::ApiError,
    message::view::FailureView,
    observe::queue_stats::{self, QueueStatsView},
    outgoing::domain::check::{DnsFinding, rank},
    state::AppState,
};

/// How many messages the times in queue and failure reasons are taken from.
const SAMPLE: u32 = 500;
/// Older failures are left out.
const FAILURES_MS: i64 = 24 * 60 * 60 * 1000;
/// Minutes in the chart.
const MINUTES: i64 = 60;
const MINUTE_MS: i64 = 60_000;
/// The most domains that are named.
const DOMAINS_SHOWN: usize = 10;

/// The overview of a tenant's mail.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Overview)]
pub(crate) struct TenantOverview {
    /// When this was read.
    #[schema(value_type = String, format = DateTime)]
    at: Time,
    #[serde(flatten)]
    stats: QueueStatsView,
    /// How long messages waited until they were sent, of the latest ones.
    time_in_queue: TimeInQueue,
    /// Why messages failed in the last day, of the latest ones; the most frequent first.
    failures: Vec<FailureCount>,
    /// What blocks mail now, the largest first; at most 20.
    holders: Vec<HolderView>,
    /// Accounts with an open circuit.
    circuits: Vec<OverviewCircuit>,
    /// Domains whose DNS lacks something or has something wrong, as the last check found.
    domains: Vec<OverviewDomain>,
    /// Mailboxes that are behind, or cannot be read.
    mailboxes: Vec<OverviewMailbox>,
    /// Webhooks with calls due, and those deactivated because of their answers.
    subscribers: Vec<OverviewSubscriber>,
    /// How much of its daily quota the tenant has used; absent if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    quota: Option<OverviewQuota>,
    /// The nodes, for the admin key.
    nodes: Vec<NodeView>,
    /// The last hour, minute by minute, the oldest first.
    last_hour: Vec<OverviewMinute>,
}

/// Percentiles.
#[derive(Debug, Default, PartialEq, Serialize, ToSchema)]
struct TimeInQueue {
    p50_ms: Option<i64>,
    p95_ms: Option<i64>,
    /// The number of messages examined.
    sample: usize,
}

/// A failure code and its frequency.
#[derive(Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = FailureReason)]
struct FailureCount {
    /// The failure's code.
    code: String,
    /// The number of messages.
    count: usize,
}

/// An account with an open circuit.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OpenCircuit)]
struct OverviewCircuit {
    account: String,
    code: String,
    reason: String,
    /// When it is tried again.
    #[schema(value_type = String, format = DateTime)]
    open_until: Time,
}

/// A domain that needs attention.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DomainUnsound)]
struct OverviewDomain {
    domain: String,
    /// The checks that found something missing or wrong.
    checks: Vec<String>,
    /// Whether a record does harm, or only lacks.
    wrong: bool,
}

/// A mailbox that needs attention.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MailboxBehind)]
struct OverviewMailbox {
    mailbox: String,
    lag: Option<u32>,
    error: Option<String>,
}

/// A webhook that needs attention.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SubscriberBehind)]
struct OverviewSubscriber {
    id: String,
    url: String,
    /// Whether it has calls due now.
    due: bool,
    /// Why it was deactivated.
    disabled_reason: Option<String>,
}

/// How much of a daily quota is used. What nodes have reserved for themselves counts, up to a hundredth each.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = QuotaUse)]
struct OverviewQuota {
    messages: Option<OverviewQuotaBound>,
    bytes: Option<OverviewQuotaBound>,
    recipients: Option<OverviewQuotaBound>,
    /// 100 or 80 if that part of a bound is used, in per cent, otherwise 0.
    warning_percent: u8,
    /// When the next day begins.
    #[schema(value_type = String, format = DateTime)]
    renewed_at: Time,
}

/// A bound of a daily quota.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = QuotaBound)]
struct OverviewQuotaBound {
    used: u64,
    of: u64,
}

/// The counts of one minute.
#[derive(Debug, Default, PartialEq, Serialize, ToSchema)]
#[schema(as = Minute)]
struct OverviewMinute {
    /// When it began.
    #[schema(value_type = String, format = DateTime)]
    at: Option<Time>,
    accepted: i64,
    sent: i64,
    failed: i64,
}

pub(super) async fn overview(app: &AppState, caller: &Caller) -> Result<TenantOverview, ApiError> {
    let (now, tenant) = (app.clock.now(), &caller.tenant);
    let sent = latest(app, tenant, MessageStatus::Sent, None).await?;
    let failed =
        latest(app, tenant, MessageStatus::Failed, Some(Time::from_millis(now.as_millis() - FAILURES_MS)))
            .await?;
    Ok(TenantOverview {
        at: now,
        stats: queue_stats::gather(app, tenant).await?,
        time_in_queue: time_in_queue(&sent),
        failures: reasons(&failed),
        holders: holders::holders(&*app.store, tenant, now).await?,
        circuits: circuits(app, tenant, now).await?,
        domains: domains(app, tenant).await?,
        mailboxes: mailboxes(app, tenant).await?,
        subscribers: subscribers(app, tenant, now).await?,
        quota: quota(app, tenant, now).await?,
        nodes: if caller.actor.is_admin() { node::all(app).await? } else { Vec::new() },
        last_hour: last_hour(app, tenant, now).await?,
    })
}

async fn latest(
    app: &AppState,
    tenant: &TenantId,
    status: MessageStatus,
    since: Option<Time>,
) -> Result<Vec<MessageSummary>, ApiError> {
    let filter = MessageFilter { status: Some(status), since, ..MessageFilter::default() };
    // One page: the newest ones, in bounded time.
    Ok(app.store.search(tenant, &filter, None, SAMPLE).await?.messages)
}

/// The time from when a message could be sent until it was.
fn time_in_queue(sent: &[MessageSummary]) -> TimeInQueue {
    let mut waits: Vec<i64> = sent
        .iter()
        .filter_map(|message| Some(message.sent_at?.as_millis() - message.created_at.as_millis()))
        .collect();
    waits.sort_unstable();
    let at =
        |percent: usize| waits.get((waits.len() * percent / 100).min(waits.len().saturating_sub(1))).copied();
    TimeInQueue { p50_ms: at(50), p95_ms: at(95), sample: waits.len() }
}

fn reasons(failed: &[MessageSummary]) -> Vec<FailureCount> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for message in failed {
        let failure = message.error.as_deref().map(FailureView::read).unwrap_or_default();
        *counts.entry(failure.code().unwrap_or("unknown").to_owned()).or_default() += 1;
    }
    let mut reasons: Vec<FailureCount> =
        counts.into_iter().map(|(code, count)| FailureCount { code, count }).collect();
    reasons.sort_by_key(|reason| std::cmp::Reverse(reason.count));
    reasons
}

async fn circuits(app: &AppState, tenant: &TenantId, now: Time) -> Result<Vec<OverviewCircuit>, ApiError> {
    let open = app.store.circuits(Some(tenant)).await?.into_iter().filter(|circuit| circuit.open_until > now);
    let view = |circuit: OpenCircuit| OverviewCircuit {
        account: circuit.key.account.to_string(),
        code: circuit.code,
        reason: circuit.reason,
        open_until: circuit.open_until,
    };
    Ok(open.map(view).collect())
}

/// The worst first.
async fn domains(app: &AppState, tenant: &TenantId) -> Result<Vec<OverviewDomain>, ApiError> {
    let checks = app.store.domain_checks(tenant, DomainCheckRecord::DOMAINS_MAX).await?;
    let unsound = checks.into_iter().filter(|check| check.right_since.is_none());
    let mut domains: Vec<OverviewDomain> = unsound
        .filter_map(|check| {
            let findings: Vec<DnsFinding> = serde_json::from_str(&check.findings).ok()?;
            let bad = findings.iter().filter(|one| rank(&one.state) >= rank("missing"));
            let checks: Vec<String> = bad.clone().map(|one| one.check.clone()).collect();
            let wrong = bad.clone().any(|one| rank(&one.state) > rank("missing"));
            (!checks.is_empty()).then_some(OverviewDomain { domain: check.domain, checks, wrong })
        })
        .collect();
    domains.sort_by(|a, b| (b.wrong, b.checks.len(), &a.domain).cmp(&(a.wrong, a.checks.len(), &b.domain)));
    domains.truncate(DOMAINS_SHOWN);
    Ok(domains)
}

async fn mailboxes(app: &AppState, tenant: &TenantId) -> Result<Vec<OverviewMailbox>, ApiError> {
    let states = app.store.mailbox_states(Some(tenant)).await?.into_iter();
    let behind = states.filter(|state| state.error.is_some() || state.lag().is_some_and(|lag| lag > 0));
    Ok(behind
        .map(|state| OverviewMailbox {
            lag: state.lag(),
            mailbox: state.key.mailbox.to_string(),
            error: state.error,
        })
        .collect())
}

async fn subscribers(
    app: &AppState,
    tenant: &TenantId,
    now: Time,
) -> Result<Vec<OverviewSubscriber>, ApiError> {
    let due = app.store.report_state(now).await?.due;
    let all = app.store.subscribers(Some(tenant)).await?.into_iter();
    let all = all.filter(|one| one.kind != SubscriberKind::Archive);
    let views = all.map(|one| OverviewSubscriber {
        due: due.iter().any(|due| due.tenant == *tenant && due.subscriber == one.id),
        id: one.id.to_string(),
        url: one.url,
        disabled_reason: one.disabled_reason,
    });
    Ok(views.filter(|view| view.due || view.disabled_reason.is_some()).collect())
}

async fn quota(app: &AppState, tenant: &TenantId, now: Time) -> Result<Option<OverviewQuota>, ApiError> {
    let found = app.store.tenant(tenant).await?;
    let quota = found.map(|tenant| tenant.settings.daily_quota).unwrap_or_default();
    if quota.is_unlimited() {
        return Ok(None);
    }
    let day = QuotaDay::of(now);
    let QuotaUse { used, .. } = app.store.quota_use(tenant, day).await?;
    let bound = |of: Option<u64>, used: u64| of.map(|of| OverviewQuotaBound { used, of });
    Ok(Some(OverviewQuota {
        messages: bound(quota.messages, used.messages),
        bytes: bound(quota.bytes, used.bytes),
        recipients: bound(quota.recipients, used.recipients),
        warning_percent: quota.warning(used),
        renewed_at: day.end(),
    }))
}

async fn last_hour(app: &AppState, tenant: &TenantId, now: Time) -> Result<Vec<OverviewMinute>, ApiError> {
    let first = now.as_millis().div_euclid(MINUTE_MS) - MINUTES + 1;
    let since = Time::from_millis(first * MINUTE_MS);
    let mut minutes: Vec<OverviewMinute> = (0..MINUTES)
        .map(|n| OverviewMinute {
            at: Some(Time::from_millis((first + n) * MINUTE_MS)),
            ..OverviewMinute::default()
        })
        .collect();
    for pace in app.store.pace(tenant, since).await? {
        let place = usize::try_from(pace.at.as_millis().div_euclid(MINUTE_MS) - first).ok();
        let Some(minute) = place.and_then(|place| minutes.get_mut(place)) else { continue };
        minute.accepted += pace.accepted;
        minute.sent += pace.sent;
        minute.failed += pace.failed;
    }
    Ok(minutes)
}
