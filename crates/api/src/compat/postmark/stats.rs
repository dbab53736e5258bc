//! `/stats/outbound` and its parts, and `/deliverystats`: counts by day, in UTC.
//!
//! They are the counts of `/v1/statistics`, which are stored by account and hour and not by tag or stream: a
//! request for those is refused. Opens and links are not tracked, so there are none; bounces are not counted
//! by kind.

use std::{collections::BTreeMap, time::Duration};

use axum::{Json, extract::State, http::Uri};
use postway_domain::{TenantId, Time};
use serde_json::{Value, json};

use super::{
    error::PostmarkFault,
    query::{LIST_MAX, PostmarkQuery},
};
use crate::{
    auth::Reader,
    compat::routes::CompatRoutes,
    http::error::ApiError,
    state::{AppState, SharedState},
};

/// The longest time range, in days.
const DAYS_MAX: u64 = 366;
/// Suppressions that are read at once.
const LOOK: u32 = 500;

/// Adds the routes. Some SDKs write a path as the documentation does, some in lower case.
pub(super) fn routes(routes: CompatRoutes) -> CompatRoutes {
    routes
        .get("/deliverystats", deliveries)
        .get("/deliveryStats", deliveries)
        .get("/stats/outbound", overview)
        .get("/stats/outbound/sends", sends)
        .get("/stats/outbound/bounces", bounces)
        .get("/stats/outbound/spam", spam)
        .get("/stats/outbound/tracked", no_tracked)
        .get("/stats/outbound/opens", no_opens)
        .get("/stats/outbound/opens/platforms", no_days)
        .get("/stats/outbound/opens/emailclients", no_days)
        .get("/stats/outbound/opens/emailClients", no_days)
        .get("/stats/outbound/opens/readtimes", no_days)
        .get("/stats/outbound/opens/readTimes", no_days)
        .get("/stats/outbound/clicks", no_clicks)
        .get("/stats/outbound/clicks/browserfamilies", no_days)
        .get("/stats/outbound/clicks/browserFamilies", no_days)
        .get("/stats/outbound/clicks/platforms", no_days)
        .get("/stats/outbound/clicks/location", no_days)
}

/// The counts of one day, or of all.
#[derive(Clone, Copy, Default)]
struct DayCounts {
    sent: i64,
    bounced: i64,
    complained: i64,
}

impl DayCounts {
    fn add(&mut self, other: Self) {
        self.sent += other.sent;
        self.bounced += other.bounced;
        self.complained += other.complained;
    }

    /// The percentage of what was sent.
    fn rate(self, of: i64) -> f64 {
        if self.sent > 0 { of as f64 * 100.0 / self.sent as f64 } else { 0.0 }
    }
}

/// The counts in all and by day.
struct DailyCounts {
    all: DayCounts,
    /// By the day's first ten characters, as in `2030-01-31`.
    days: BTreeMap<String, DayCounts>,
}

impl DailyCounts {
    async fn read(app: &AppState, tenant: &TenantId, uri: &Uri) -> Result<Self, ApiError> {
        let asked = PostmarkQuery::from_uri(uri)?;
        for name in ["tag", "messagestream"] {
            if asked.text(name)?.is_some() {
                return Err(
                    PostmarkFault::Query.error(name, "counts are not kept by tag or stream: ask for all")
                );
            }
        }
        Self::between(app, tenant, asked.since()?, asked.until()?).await
    }

    async fn between(
        app: &AppState,
        tenant: &TenantId,
        since: Option<Time>,
        until: Option<Time>,
    ) -> Result<Self, ApiError> {
        let longest = Duration::from_secs(DAYS_MAX * 86_400);
        // The current hour counts too.
        let until = until.unwrap_or_else(|| app.clock.now().plus(Duration::from_millis(1)));
        let since = since.unwrap_or_else(|| until.minus(longest));
        if until.since(since) > longest {
            let message = format!("is more than {DAYS_MAX} days before todate: ask for less");
            return Err(PostmarkFault::Query.error("fromdate", message));
        }
        let mut counted = Self { all: DayCounts::default(), days: BTreeMap::new() };
        for row in app.store.statistics(tenant, since, until).await? {
            let sums = DayCounts {
                sent: row.counts.sent,
                bounced: row.counts.bounced,
                complained: row.counts.complained,
            };
            counted.all.add(sums);
            let day = row.hour.to_string().chars().take(10).collect();
            counted.days.entry(day).or_default().add(sums);
        }
        Ok(counted)
    }

    /// The days with a count, under this name.
    fn days(&self, name: &str, of: impl Fn(&DayCounts) -> i64) -> Vec<Value> {
        let counted = self.days.iter().map(|(day, sums)| (day, of(sums))).filter(|(_, count)| *count > 0);
        counted.map(|(day, count)| json!({"Date": day, name: count})).collect()
    }
}

async fn overview(State(app): State<SharedState>, caller: Reader, uri: Uri) -> Result<Json<Value>, ApiError> {
    let DailyCounts { all, .. } = DailyCounts::read(&app, &caller.tenant, &uri).await?;
    Ok(Json(json!({
        "Sent": all.sent,
        "Bounced": all.bounced,
        "SMTPApiErrors": 0,
        "BounceRate": all.rate(all.bounced),
        "SpamComplaints": all.complained,
        "SpamComplaintsRate": all.rate(all.complained),
        "Opens": 0,
        "UniqueOpens": 0,
        "Tracked": 0,
        "WithLinkTracking": 0,
        "WithOpenTracking": 0,
        "TotalTrackedLinksSent": 0,
        "UniqueLinksClicked": 0,
        "TotalClicks": 0,
        "WithClientRecorded": 0,
        "WithPlatformRecorded": 0,
        "WithReadTimeRecorded": 0,
    })))
}

async fn sends(State(app): State<SharedState>, caller: Reader, uri: Uri) -> Result<Json<Value>, ApiError> {
    let counted = DailyCounts::read(&app, &caller.tenant, &uri).await?;
    Ok(Json(json!({"Days": counted.days("Sent", |sums| sums.sent), "Sent": counted.all.sent})))
}

async fn bounces(State(app): State<SharedState>, caller: Reader, uri: Uri) -> Result<Json<Value>, ApiError> {
    let counted = DailyCounts::read(&app, &caller.tenant, &uri).await?;
    Ok(Json(json!({"Days": counted.days("Unknown", |sums| sums.bounced), "Unknown": counted.all.bounced})))
}

async fn spam(State(app): State<SharedState>, caller: Reader, uri: Uri) -> Result<Json<Value>, ApiError> {
    let counted = DailyCounts::read(&app, &caller.tenant, &uri).await?;
    let days = counted.days("SpamComplaint", |sums| sums.complained);
    Ok(Json(json!({"Days": days, "SpamComplaint": counted.all.complained})))
}

async fn no_tracked(_caller: Reader) -> Json<Value> {
    Json(json!({"Days": [], "Tracked": 0}))
}

async fn no_opens(_caller: Reader) -> Json<Value> {
    Json(json!({"Days": [], "Opens": 0, "Unique": 0}))
}

async fn no_clicks(_caller: Reader) -> Json<Value> {
    Json(json!({"Days": [], "Clicks": 0, "Unique": 0}))
}

async fn no_days(_caller: Reader) -> Json<Value> {
    Json(json!({"Days": []}))
}

/// Bounces of the last year, and the number of suppressed addresses, counted up to 10,000.
async fn deliveries(State(app): State<SharedState>, caller: Reader) -> Result<Json<Value>, ApiError> {
    let DailyCounts { all, .. } = DailyCounts::between(&app, &caller.tenant, None, None).await?;
    let (now, mut inactive, mut after) = (app.clock.now(), 0, None::<String>);
    while inactive < LIST_MAX {
        let found = app.store.suppressions(&caller.tenant, after.as_deref(), LOOK).await?;
        inactive += found.iter().filter(|one| one.expires_at.is_none_or(|until| until > now)).count();
        match found.last() {
            Some(last) if found.len() == LOOK as usize => after = Some(last.address.clone()),
            _ => break,
        }
    }
    Ok(Json(json!({
        "InactiveMails": inactive.min(LIST_MAX),
        "Bounces": [
            {"Name": "All", "Count": all.bounced + all.complained},
            {"Name": "Unknown", "Count": all.bounced, "Type": "Unknown"},
            {"Name": "Spam complaint", "Count": all.complained, "Type": "SpamComplaint"},
        ],
    })))
}
